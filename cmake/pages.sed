#!/bin/sed -Ef
# Filters a page for Doxygen. Pictures that are links become plain pictures. Links to headings, and to files that are
# not in the reference, become plain text.
s,\[(!\[[^]]*\]\([^)]*\))\]\([^)]*\),\1,g
s,\[([^][]*)\]\((#|(\.\./)*(fuzz|benchmarks|examples|framework|layers|quant|tests|scripts)/)[^)]*\),\1,g
