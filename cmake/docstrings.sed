#!/bin/sed -Ef
# What Doxygen reads of a header: the parts of a docstring as paragraphs with a title.
s,^( *///) (Shapes|Gradient|Throws|Source|Parameters|Buffers|State): *,\1 \\par \2\n\1 ,
