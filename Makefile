# Everything a person types. Each target sets up what it needs; a second setup does nothing.
.PHONY: setup demo test lint asan tsan bench docs fuzz clean

setup:
	@scripts/setup.sh

demo: setup
	@.venv/bin/python examples/demo.py

test: setup
	@scripts/test.sh

lint: setup
	@scripts/lint.sh

asan:
	@scripts/sanitize.sh asan

tsan:
	@scripts/sanitize.sh tsan

bench: setup
	@.venv/bin/python bench/run.py --markdown docs/performance.md

docs: setup
	@scripts/docs.sh

fuzz: setup
	@.venv/bin/python tests/fuzz/run.py --count 1000

clean:
	rm -rf build .venv python/fuselab/*.so
