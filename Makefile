# mha-inspect: one non-recursive Makefile. `make help` lists what it can do.
#
#   CC=gcc|clang        the compiler; every compiler but gcc gets its own build directories
#   DEV=1               warnings are errors
#   V=1                 shows whole commands
#   FLAVOUR=release     also: asan (with UBSan), ubsan, fuzz; each in build/FLAVOUR
#   PREFIX=, DESTDIR=   where install puts things
#   SUITES="unit cli"   what check runs; all suites by default

ifeq ($(origin CC),default)
CC := gcc
endif
FLAVOUR ?= release
PREFIX ?= /usr/local
DESTDIR ?=
SUITES ?=
PKG_CONFIG ?= pkg-config

compiler := $(notdir $(firstword $(CC)))
B := build/$(FLAVOUR)$(if $(filter-out gcc,$(compiler)),-$(compiler))
machine := $(shell $(CC) -dumpmachine 2>/dev/null)

# --- flags -----------------------------------------------------------------------------------

warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion \
	-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wcast-qual \
	-Wwrite-strings -Wundef -Wformat=2 -Wvla -Wdouble-promotion $(if $(DEV),-Werror)

# Results must not depend on what the compiler may contract or reorder: no -ffast-math, no
# -march=native, no silent fused multiply-adds.
optimise_release := -O2
optimise_asan    := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
optimise_ubsan   := -O1 -fno-omit-frame-pointer -fsanitize=undefined -fno-sanitize-recover=undefined
optimise_fuzz    := -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined
optimise := $(optimise_$(FLAVOUR))
ifeq ($(optimise),)
$(error FLAVOUR=$(FLAVOUR) is not known: release, asan, ubsan or fuzz)
endif

packages := jansson zlib libpng libjpeg libpcre2-8 libutf8proc gsl cairo pangocairo pangoft2 pango \
	fontconfig
pkg_cflags := $(shell $(PKG_CONFIG) --cflags $(packages) openblas 2>/dev/null || \
	$(PKG_CONFIG) --cflags $(packages) 2>/dev/null)
# GSL brings a plain CBLAS of its own, forty times slower: it must not win over the real one.
pkg_libs := $(filter-out -lgslcblas,$(shell $(PKG_CONFIG) --libs $(packages) 2>/dev/null)) \
	$(shell $(PKG_CONFIG) --libs openblas 2>/dev/null || echo -lopenblas)

# The headers of the libraries are not ours to warn about.
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Isrc $(patsubst -I%,-isystem %,$(pkg_cflags))
CFLAGS ?= -g
all_cflags := -std=c11 $(optimise) -ffp-contract=off -pthread $(warnings) $(CFLAGS)
LDLIBS += $(pkg_libs) -lm -pthread
quiet := $(if $(V),,@)
say = $(if $(V),:,echo "  $(1)  $@")
link = $(quiet)$(call say,LINK); $(CC) $(optimise) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LDLIBS)

# --- files -----------------------------------------------------------------------------------

sources := $(wildcard src/*/*.c)
ifeq ($(filter x86_64-%,$(machine)),)
sources := $(filter-out src/kernel/avx2.c src/kernel/avx512.c,$(sources))
endif
cli_sources := $(filter src/cli/%,$(sources))
lib_objects := $(patsubst %.c,$(B)/obj/%.o,$(filter-out src/cli/%,$(sources)))
cli_objects := $(patsubst %.c,$(B)/obj/%.o,$(cli_sources))

families := $(sort $(wildcard src/model/family/*.family))
fonts := $(sort $(wildcard src/render/font/*.ttf))
lib_objects += $(B)/gen/families.o $(B)/gen/fonts.o

lib := $(B)/libmha.a
program := $(if $(cli_sources),$(B)/mha-inspect)
tool_programs := $(patsubst %.c,$(B)/%,$(wildcard tools/*.c tools/bench/*.c))
sample_programs := $(patsubst %.c,$(B)/%,$(wildcard samples/*.c))

test_sources := $(wildcard $(foreach d,unit oracle grad corrupt render real,tests/$(d)/*.c))
support_objects := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/support/*.c))
test_programs := $(patsubst %.c,$(B)/%,$(test_sources))
fuzz_names := $(patsubst tests/fuzz/%_fuzz.c,%,$(wildcard tests/fuzz/*_fuzz.c))
replay_programs := $(fuzz_names:%=$(B)/tests/fuzz/%_replay)
fuzz_programs := $(fuzz_names:%=$(B)/tests/fuzz/%_fuzz)

c_files = $(wildcard include/mha/*.h src/*/*.[ch] tools/*.[ch] tools/*/*.[ch] samples/*.[ch] \
	tests/*/*.[ch])

# --- targets ---------------------------------------------------------------------------------

.PHONY: all lib demo check check-oracle tests bench asan ubsan lint format format-check layers fuzz install \
	uninstall clean help
.DELETE_ON_ERROR:
.SECONDARY:

## all: the library and the program (default)
all: lib $(program)

## lib: the library alone
lib: $(lib)

## demo: builds, then shows the program at work on a bundled model
demo:
	@tools/install-deps
	@$(MAKE) --no-print-directory all
	@MHA=$(B)/mha-inspect samples/demo.sh

## check: builds everything and runs the tests
check:
	@tools/install-deps
	@$(MAKE) --no-print-directory tests
	@tests/run $(B) $(SUITES)

## check-oracle: every family against reference runs; prints the largest error of each model
check-oracle: all $(B)/tests/oracle/families
	@MHA_ROOT=. $(B)/tests/oracle/families >$(B)/oracle.log 2>&1; code=$$?; \
	sed -n 's/^note: //p' $(B)/oracle.log; exit $$code

## tests: builds everything that check runs
tests: all $(test_programs) $(replay_programs) $(tool_programs) $(sample_programs)

## bench: measures, against other programs where they are installed
bench: all $(tool_programs)
	@BUILD=$(B) tools/bench/run

## asan: the tests under the address and undefined-behaviour sanitizers
asan:
	@$(MAKE) --no-print-directory FLAVOUR=asan check

## ubsan: the tests under the undefined-behaviour sanitizer alone
ubsan:
	@$(MAKE) --no-print-directory FLAVOUR=ubsan check

## lint: clang-tidy over the sources
lint: $(B)/gen/families.c
	@printf '%s\n' $(filter-out src/kernel/avx%,$(sources)) | xargs -n 8 -P "$$(nproc)" sh -c \
		'clang-tidy --quiet "$$@" -- -std=c11 $(CPPFLAGS) -DMHA_SHARE_DIR=\"\"' tidy

## format: clang-format over all C files, in place
format:
	@clang-format -i $(c_files)

## format-check: tells whether format would change anything
format-check:
	@clang-format --dry-run --Werror $(c_files)

## layers: checks who includes whom
layers:
	@tools/check-layers

## fuzz: the fuzz targets with libFuzzer (clang), in build/fuzz-clang/tests/fuzz
fuzz:
	@if command -v clang >/dev/null; then \
		$(MAKE) --no-print-directory CC=clang FLAVOUR=fuzz fuzz-programs; \
	else echo "make fuzz: clang is not installed" >&2; exit 1; fi

.PHONY: fuzz-programs
fuzz-programs: $(fuzz_programs)

## install: program, library, headers, samples, manual page, under $(DESTDIR)$(PREFIX)
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include/mha
	install -m 644 $(lib) $(DESTDIR)$(PREFIX)/lib/libmha.a
	install -m 644 include/mha/*.h $(DESTDIR)$(PREFIX)/include/mha
ifneq ($(program),)
	install -m 755 $(program) $(DESTDIR)$(PREFIX)/bin/mha-inspect
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 src/cli/mha-inspect.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 644 src/cli/mha-inspect.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/mha-inspect
	install -d $(DESTDIR)$(PREFIX)/share/mha-inspect
	cp -R samples/models $(DESTDIR)$(PREFIX)/share/mha-inspect
endif

## uninstall: removes what install put there
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/mha-inspect $(DESTDIR)$(PREFIX)/lib/libmha.a \
		$(DESTDIR)$(PREFIX)/share/man/man1/mha-inspect.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/mha-inspect
	rm -rf $(DESTDIR)$(PREFIX)/include/mha $(DESTDIR)$(PREFIX)/share/mha-inspect

## clean: removes build/
clean:
	rm -rf build

## help: this list
help:
	@sed -n 's/^## \([a-z-]*\): /\1\t/p' Makefile | awk -F '\t' '{printf "  %-14s %s\n", $$1, $$2}'

# --- rules -----------------------------------------------------------------------------------

# The list of objects is a prerequisite of its own: a source that went away leaves the library too.
$(B)/objects: force
	@mkdir -p $(@D)
	@echo $(lib_objects) $(cli_objects) | cmp -s - $@ || echo $(lib_objects) $(cli_objects) > $@
.PHONY: force

$(lib): $(lib_objects) $(B)/objects
	@mkdir -p $(@D)
	$(quiet)$(call say,AR  ); rm -f $@; $(AR) rcs $@ $(filter %.o,$^)

$(B)/mha-inspect: $(cli_objects) $(lib) $(B)/objects
	$(link)

# Where the program looks for its samples when they are not beside it.
$(B)/obj/src/cli/sample.o: CPPFLAGS += -DMHA_SHARE_DIR='"$(PREFIX)/share/mha-inspect"'

# Only these two files may use instructions that not every processor has.
$(B)/obj/src/kernel/avx2.o: isa_flags := -mavx2 -mfma -mf16c
$(B)/obj/src/kernel/avx512.o: isa_flags := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 \
	-mfma -mf16c
# cmocka hands every test a state that few of them look at; isfinite and its kin widen floats in clang.
$(B)/obj/tests/%.o: test_flags := -Itests -Wno-unused-parameter -Wno-double-promotion

$(B)/obj/%.o: %.c $(MAKEFILE_LIST)
	@mkdir -p $(@D)
	$(quiet)$(call say,CC  ); $(CC) $(CPPFLAGS) $(all_cflags) $(isa_flags) $(test_flags) -MMD -MP -c -o $@ $<

$(B)/gen/families.c: $(families) tools/embed $(wildcard src/model/family)
	@mkdir -p $(@D)
	$(quiet)$(call say,GEN ); tools/embed model/families.h mha_families mha_family_count $(families) > $@

$(B)/gen/fonts.c: $(fonts) tools/embed
	@mkdir -p $(@D)
	$(quiet)$(call say,GEN ); tools/embed render/font_data.h mha_fonts mha_font_count $(fonts) > $@

$(B)/gen/%.o: $(B)/gen/%.c $(MAKEFILE_LIST)
	$(quiet)$(call say,CC  ); $(CC) $(CPPFLAGS) $(all_cflags) -MMD -MP -c -o $@ $<

$(test_programs): LDLIBS += -lcmocka
$(test_programs): $(B)/tests/%: $(B)/obj/tests/%.o $(support_objects) $(lib)
	@mkdir -p $(@D)
	$(link)

$(replay_programs): $(B)/tests/fuzz/%_replay: $(B)/obj/tests/fuzz/%_fuzz.o \
		$(B)/obj/tests/fuzz/replay.o $(lib)
	@mkdir -p $(@D)
	$(link)

$(fuzz_programs): optimise += -fsanitize=fuzzer
$(fuzz_programs): $(B)/tests/fuzz/%_fuzz: $(B)/obj/tests/fuzz/%_fuzz.o $(lib)
	@mkdir -p $(@D)
	$(link)

$(tool_programs) $(sample_programs): $(B)/%: $(B)/obj/%.o $(lib)
	@mkdir -p $(@D)
	$(link)

-include $(shell find $(B) -name '*.d' 2>/dev/null)
