// Package check reads the manifests as the Kubernetes API would: strictly, into
// its own types. It is a module of its own, so that these types stay out of ours.
package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func kinds() map[string]any {
	return map[string]any{
		"apps/v1 Deployment": &appsv1.Deployment{}, "v1 Service": &corev1.Service{}, "v1 ConfigMap": &corev1.ConfigMap{}, "v1 Secret": &corev1.Secret{},
		"policy/v1 PodDisruptionBudget": &policyv1.PodDisruptionBudget{}, "networking.k8s.io/v1 NetworkPolicy": &networkingv1.NetworkPolicy{},
		"autoscaling/v2 HorizontalPodAutoscaler": &autoscalingv2.HorizontalPodAutoscaler{},
	}
}

func TestManifestsAreOfKubernetesOwnTypes(t *testing.T) {
	files, err := filepath.Glob("../*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, name := range files {
		if filepath.Base(name) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range bytes.Split(text, []byte("\n---\n")) {
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal(doc, &head); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			kind := head.APIVersion + " " + head.Kind
			into, ok := kinds()[kind]
			if !ok {
				t.Errorf("%s: %q is no kind of ours", name, kind)
				continue
			}
			if err := yaml.UnmarshalStrict(doc, into); err != nil {
				t.Errorf("%s: %s: %v", name, kind, err)
			}
			if d, ok := into.(*appsv1.Deployment); ok {
				deployment(t, name, d)
			}
			seen[kind]++
		}
	}
	for kind, want := range map[string]int{"apps/v1 Deployment": 3, "policy/v1 PodDisruptionBudget": 3, "autoscaling/v2 HorizontalPodAutoscaler": 1} {
		if seen[kind] != want {
			t.Errorf("%d of %s, want %d", seen[kind], kind, want)
		}
	}
}

// deployment checks what a strict reading does not: what must fit together.
func deployment(t *testing.T, name string, d *appsv1.Deployment) {
	t.Helper()
	labels := d.Spec.Template.Labels
	for k, v := range d.Spec.Selector.MatchLabels {
		if labels[k] != v {
			t.Errorf("%s: the selector asks for %s=%s, the pods have %q", name, k, v, labels[k])
		}
	}
	pod := d.Spec.Template.Spec
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range pod.Containers {
		if c.ReadinessProbe == nil || c.Resources.Requests.Memory().IsZero() || c.SecurityContext == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s: container %s has no readiness probe, no request of memory, or may write to its image", name, c.Name)
		}
		if len(c.Ports) > 0 {
			served(t, name, c)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: no volume %s", name, m.Name)
			}
		}
	}
	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 || *pod.TerminationGracePeriodSeconds < 40 {
		t.Errorf("%s: it runs as root, or has too little time to end", name)
	}
	if *d.Spec.Replicas < 2 || strings.Contains(pod.Containers[0].Image, "/") {
		t.Errorf("%s: %d replicas of %s", name, *d.Spec.Replicas, pod.Containers[0].Image)
	}
}

// served checks a container that is called: its probes ask where it listens, and
// it serves on for a moment when it is to end.
func served(t *testing.T, name string, c corev1.Container) {
	t.Helper()
	for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != c.Ports[0].Name {
			t.Errorf("%s: no probe asks %s at port %s", name, path, c.Ports[0].Name)
		}
	}
	if l := c.Lifecycle; l == nil || l.PreStop == nil || l.PreStop.Sleep == nil || l.PreStop.Sleep.Seconds <= 0 {
		t.Errorf("%s: it ends while it is still called", name)
	}
}
