"""The precision report: what fuselab claims about numbers, run as studies that anyone can repeat.

    python -m fuselab.prove              # all tasks, default size, into ./fuselab_prove
    python -m fuselab.prove A C2 --small # two of them, small
    fuselab prove --full                 # the same from the program

docs/prove.md describes the tasks. Every task writes tables (CSV and Markdown) and, where a picture says more, plots; index.html
shows all. Exit code 1 when a claim does not hold.
"""
