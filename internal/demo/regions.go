package demo

// region is what the charts of one country are made of. The names are made up.
type region struct {
	code     string
	channels []string
	subjects []string
	endings  []string
}

// regions have a chart; the API answers any other with videoChartNotFound.
var regions = []region{
	{"BD",
		[]string{"Padma Beats", "Dhaka Frames", "Sundarban Games", "Meghna Music", "Rickshaw Reels"},
		[]string{"নদীর গান", "Rain over Dhaka", "মেঘের দেশে", "Rickshaw Race", "Hilsa Season", "বৈশাখী মেলা", "Tea Garden Road"},
		[]string{"Official Video", "Full Drama", "পর্ব", "Live Session", "Gameplay"}},
	{"PH",
		[]string{"Bayanihan Sounds", "Manila Nights", "Jeepney Plays", "Lakbay Films", "Harana Live"},
		[]string{"Tag-ulan", "Jeepney Love", "Isang Gabi", "Mayon Sunrise", "Bahay Kubo Remix", "Fiesta Day", "Alon"},
		[]string{"Official Music Video", "Full Movie", "Lyric Video", "Live Performance", "Gameplay"}},
	{"HR",
		[]string{"Jadran Glazba", "Zagreb Kadar", "Dalmatia Play", "Velebit Zvuk", "Klapa Uživo"},
		[]string{"Ljeto na Jadranu", "Čuvaj me", "Bura", "Noć u Zagrebu", "Lavanda", "Zlatni rat", "Šibenska pjesma"},
		[]string{"Službeni video", "Najava", "Uživo", "Epizoda", "Gameplay"}},
	{"IN",
		[]string{"Ganga Music", "Monsoon Pictures", "Chai Gaming", "Deccan Tunes", "Raagam Studio"},
		[]string{"बारिश", "Dil Ki Baat", "காதல் மழை", "Monsoon Wedding Song", "రాత్రి", "Chai Break", "Tigers of the Ghats"},
		[]string{"Official Trailer", "Lyrical", "Full Song", "Teaser", "Gameplay"}},
	{"US",
		[]string{"Mesa Records", "Lakeside Pictures", "Pixel Diner", "Bayou Sound", "Night Shift Trailers"},
		[]string{"Highway Lights", "Blue Static", "The Long Orbit", "Paper Crowns", "Desert Radio", "Second Moon", "Porch Song"},
		[]string{"Official Video", "Official Trailer", "Visualizer", "Live", "Gameplay"}},
	{"GB",
		[]string{"Moorland Music", "Thames Pictures", "Teatime Plays", "Harbour Sound", "Lantern Trailers"},
		[]string{"Grey Weather", "Last Tram Home", "Saltmarsh", "Brick & Ivy", "The Quiet Season", "Northern Lines", "Kettle Song"},
		[]string{"Official Video", "Official Trailer", "Acoustic", "Live Lounge Take", "Gameplay"}},
	{"JP",
		[]string{"あおぞら音楽", "夜行フィルム", "ねこゲーム部", "みなと Records", "灯台シネマ"},
		[]string{"夏の終わり", "星を数える", "雨音", "Night Train", "さくら通り", "海辺の町", "ひかり"},
		[]string{"Music Video", "予告編", "ライブ映像", "弾き語り", "ゲーム実況"}},
	{"BR",
		[]string{"Maré Música", "Sertão Filmes", "Capivara Games", "Roda de Som", "Cinema da Serra"},
		[]string{"Saudade do Mar", "Noite em Olinda", "Chuva de Verão", "Samba da Esquina", "Ipê Amarelo", "Coração", "Estrada Real"},
		[]string{"Clipe Oficial", "Trailer", "Ao Vivo", "Letra", "Gameplay"}},
}

// Regions are the codes of the regions that have a chart.
func Regions() []string {
	out := make([]string, len(regions))
	for i, r := range regions {
		out[i] = r.code
	}
	return out
}

func regionOf(code string) (region, bool) {
	for _, r := range regions {
		if r.code == code {
			return r, true
		}
	}
	return region{}, false
}
