# Targets: test (everything that CI asks for), unit, pace, lint, bench, demo, build, soak.

GO          ?= go
GOLANGCI    ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
TESTTIMEOUT ?= 12m

.PHONY: test unit pace lint deps bench demo build soak fuzz clean

test: deps lint
	$(GO) vet ./...
	$(GO) test -run 'Thousand|Hundred|Heavy|Delay' ./jobs
	cd deploy/kubernetes/check && $(GO) test ./...
	$(GO) test -race -timeout $(TESTTIMEOUT) ./...

# The pace of crowds alone: the race detector would slow them.
pace:
	$(GO) test -run 'Thousand|Hundred|Heavy|Delay' ./jobs

# The same tests again without the checks around them.
unit:
	$(GO) test -race -timeout $(TESTTIMEOUT) ./...

# What the tests start for real; installed with apt where it is missing.
deps:
	./.ci/deps

lint:
	$(GOLANGCI) run

bench:
	$(GO) run ./internal/bench

demo:
	$(GO) run ./cmd/feedwarden demo

build:
	$(GO) build -trimpath -ldflags "-X main.release=$$(git describe --tags --always --dirty 2>/dev/null)" -o feedwarden ./cmd/feedwarden

# Longer searches by fuzzers and models: an hour on two cores.
FUZZTIME ?= 30s
fuzz:
	./.ci/fuzz $(FUZZTIME)

soak:
	SOAK=1 RAPID_CHECKS=1000 $(GO) test -race -timeout 60m ./...
	$(MAKE) fuzz FUZZTIME=1m

clean:
	rm -f feedwarden
