#!/bin/sed -Ef
# What Doxygen reads of a page: links to headings, of pictures, and to pages that are not in the reference, as what they
# are links of.
s,\[(!\[[^]]*\]\([^)]*\))\]\([^)]*\),\1,g
s,\[([^][]*)\]\((#|(\.\./)*(fuzz|examples|framework|layers|quant|tests|scripts)/)[^)]*\),\1,g
