#!/bin/sed -Ef
# Filters a page for Doxygen: links on pictures, links to headings and links to files that are not in the reference
# become plain pictures or plain text.
s,\[(!\[[^]]*\]\([^)]*\))\]\([^)]*\),\1,g
s,\[([^][]*)\]\((#|(\.\./)*(fuzz|examples|framework|layers|quant|tests|scripts)/)[^)]*\),\1,g
