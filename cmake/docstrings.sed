#!/bin/sed -Ef
# Filters a header for Doxygen: the parts of a docstring become paragraphs with a title.
s,^( *///) (Shapes|Gradient|Throws|Source|Parameters|Buffers|State): *,\1 \\par \2\n\1 ,
