# The door of cosched. `make` or `make help` says what there is; long steps live in tools/.
SHELL      = /bin/bash
PREFIX     ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR    ?=
CARGO      ?= cargo
export PREFIX SYSCONFDIR DESTDIR CARGO

.DEFAULT_GOAL = help
# cargo and tools/ use all CPUs themselves; what is set up comes first.
.NOTPARALLEL:
.PHONY: help setup-demo setup-bench setup-test setup-museum setup-packages build programs demo check test swarm soak kill-everywhere bench reproduce experiments museum packages release docs install uninstall clean fuzz

help: ## this list
	@echo "cosched lets several parallel jobs share the same processors without the collapse."
	@echo
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Variables: PREFIX=$(PREFIX) SYSCONFDIR=$(SYSCONFDIR) DESTDIR=$(DESTDIR)"
	@echo "Parts:     tools/test --help, tools/bench/bench --help, tools/setup --help"

# With what `make build` has made, if it has; else with the few programs that it needs, which compile faster.
demo: setup-demo programs ## show what cosched is for, on this machine (about two minutes, build aside)
	@if [ -e target/release/coschedd ]; then \
		echo "build: cargo build --release" && $(CARGO) build --release --quiet && exec target/release/cosched demo; \
	else \
		echo "build: cargo build --profile demo" && \
		$(CARGO) build --quiet --profile demo --no-default-features -p cosched-cli -p cosched-daemon -p cosched-wait && \
		exec target/demo/cosched demo; \
	fi

build: programs ## compile cosched (release) and the test programs
	@echo "build: cargo build --release"
	@$(CARGO) build --release --quiet

programs: ## compile the test programs into build/programs
	@echo "build: programs"
	@$(MAKE) --no-print-directory -s -C programs OUT=$(CURDIR)/build/programs

check: ## a few minutes: format, clippy, import rules, tidiness, unit tests of the rooms that you have changed
	@tools/test fmt imports tidy clippy unit

# Installing waits for the network, and compiling does not: a first build runs beside it. If that fails, tools/test says why.
test: ## all checks and tests
	@CARGO_INCREMENTAL=0 $(CARGO) build --workspace --lib --bins --tests --quiet >/dev/null 2>&1 & first=$$!; \
	trap 'kill $$first 2>/dev/null' EXIT; trap 'exit 130' INT TERM; \
	tools/setup test || exit; wait $$first; trap - EXIT; exec tools/test

fuzz: ## INPUTS=10000000 damaged inputs for each reader of what others have written (fuzz/; cargo-fuzz has the same targets)
	@COSCHED_FUZZ_INPUTS=$(or $(INPUTS),10000000) $(CARGO) test --profile fuzz --quiet -p cosched-daemon -p cosched-cli -p cosched-sim --test fuzz -- --nocapture

swarm: ## simulate clusters with faults, a seed after the other, for SECONDS=60 (docs/swarm.md); SWARM='--seed 17 --verbose' and so on
	@$(CARGO) build --release --quiet -p cosched-swarm
	@target/release/cosched-swarm $(or $(SWARM),--seconds $(or $(SECONDS),60))

soak: ## several clients, real daemons, a real etcd and random faults for SECONDS=7200; the history is checked (SEED=n)
	@tests/soak/run $(or $(SECONDS),7200) $(SEED)

kill-everywhere: ## kill -9 of the daemon and its guard at every system call, one run each (hours); KILL='--of guard --from 1 --to 200'
	@tests/kill-at-call/run --all $(KILL)

bench: setup-bench build ## measure: switch, cost, barrier, launch, footprint, sim, slowdown, columnsort, pipeline; one table, build/bench/*.json
	@tools/bench/bench all

reproduce: ## Zhang et al. 2000 in the simulator: published and simulated values (minutes; an hour with REPRODUCE=--full)
	@$(CARGO) build --release --quiet -p cosched-cli
	@experiments/zhang-2000/reproduce $(REPRODUCE)

experiments: build ## a paper again: PAPER=zhang-2000, strazdins-2004, roysden-2004, llnl-digital-alpha, time-sharing-2026, fujitsu-2023, tr-745 or nosv; ARGS=--quick, --help, …
	@case "$(PAPER)" in */* | .*) ;; ?*) [ ! -x "experiments/$(PAPER)/reproduce" ] || exec "experiments/$(PAPER)/reproduce" $(ARGS) ;; esac; \
	echo "make experiments: PAPER='$(PAPER)' is none of: $$(cd experiments && ls -d */reproduce | sed 's,/.*,,' | tr '\n' ' ')" >&2; exit 2

museum: setup-museum build ## published collapses with the real programs, alone, under plain Linux and under cosched; ARGS=--quick, --list, …
	@experiments/collapses/reproduce $(ARGS)

packages: setup-packages ## wheel, tarball, .deb, .rpm, conda package in build/packages, each installed, used, removed; image, action, role tried; ARGS=wheel
	@tools/packages $(ARGS)

release: ## whether version, changelog, tag and packages agree (after make packages), then the release notes on stdout; changes nothing
	@tools/release

docs: ## man pages, shell completions and, where mkdocs is installed (tools/setup test), the site into build/docs
	@$(CARGO) build --release --quiet -p cosched-cli -p cosched-columnsort
	@if [ -x target/venv/bin/mkdocs ]; then tools/site; else tools/docs build/docs; fi

install: ## install what `make build docs` made: programs, units, man pages, completions, example configuration
	@tools/install

uninstall: ## remove what install put there; a changed configuration stays
	@tools/install --uninstall

clean: ## remove build/ and target/ (the unpacked test kernel too)
	@rm -rf build target

setup-demo:
	@tools/setup demo

setup-bench:
	@tools/setup bench

setup-test:
	@tools/setup test

setup-museum:
	@tools/setup museum

setup-packages:
	@tools/setup packages
