package fetch

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers each look-up of a name with the next of its addresses,
// the last one for ever. It speaks DNS over a real socket.
type nameServer struct {
	mu    sync.Mutex
	names map[string][]string
	asked map[string]int
}

func names(t *testing.T, addresses map[string][]string) (*net.Resolver, *nameServer) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{names: addresses, asked: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := s.answer(buf[:n]); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}, s
}

func (s *nameServer) answer(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.names[strings.TrimSuffix(q.Name.String(), ".")]
	if len(all) > 0 && q.Type == dnsmessage.TypeA {
		i := s.asked[q.Name.String()]
		s.asked[q.Name.String()]++
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(all[min(i, len(all)-1)]).As4()},
		}}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// A rebinding name means one thing when it is looked at and another when it is
// dialled. Here the address that is dialled is the one that is looked at.
func TestNameThatMeansAnotherAddressAtEachLookUp(t *testing.T) {
	var asked atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1) })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	resolver, dns := names(t, map[string][]string{
		// Of documentation, loopback, cloud metadata: none may be dialled, whichever turn it is.
		"rebind.example.com": {"192.0.2.1", "127.0.0.1", "169.254.169.254", "127.0.0.1"},
	})
	c := client(t, Config{resolver: resolver})
	for range 4 {
		_, err := c.Do(t.Context(), Request{URL: "http://rebind.example.com:" + port + "/"}, Via{})
		if e := wantKind(t, err, KindPolicy); !e.Unsent || !strings.Contains(e.Error(), "resolves to an address that is refused") {
			t.Errorf("%v, unsent %v", e, e.Unsent)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests reached a private server", asked.Load())
	}
	dns.mu.Lock()
	defer dns.mu.Unlock()
	if n := dns.asked["rebind.example.com."]; n != 4 {
		t.Errorf("%d look-ups for 4 requests: an address was looked at that was not dialled", n)
	}
}
