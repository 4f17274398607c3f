# cmake -D SOURCE=<repository> -P prose.cmake
# Comments, messages and pages must read forward: the subject first, the field's words. These phrases do not.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)

# phrase(regex instead) refuses text that matches the regex, and advises what to write instead. The text is compared
# in lower case.
set(phrases 0)
macro(phrase regex instead)
  set(phrase_${phrases} "${regex}")
  set(instead_${phrases} "${instead}")
  math(EXPR phrases "${phrases} + 1")
endmacro()
phrase("of less a [a-z]+ more" "for smaller blocks, an extra page")
phrase("[ .]pages? of (less|more)[ ,.]" "for smaller blocks")
phrase("[ .](deal|deals|dealt) (evenly )?to[ ,.]" "split evenly into")
phrase("[ .](of (a|one|each|all) sorts?|each sort|all sorts|sorts of pixels)[ ,.]" "pixels whose windows cover the same taps")
phrase("(make|makes|made) the floats of" "dequantizes")
phrase("(is|are|be|being|nothing is) turned( while| for| at|[.,])" "transposed")
phrase("one behind the other" "one after the other")
phrase("behind (it|its|them|their|the|an?) (activation|relu|batch norm|reshape|subtraction|convolution|end|first|last|zero point|multiply-adds?)"
       "after")
phrase("[ .](those|them|what lies|what stands|columns|elements|bytes|anything|writes|fused|stands|slots) behind[ ,.:]" "after")
phrase("with no more [a-z]+ than this in a " "if a call has at most this many")
phrase("[.:] of [^.,:]+ (it has|they are|there are|more than [0-9]+)" "the subject first")
phrase("what of (it|them|its|the) " "what belongs to")
phrase("[ .](has|have|is|are) but (an?|one|the) " "only")

# All files are text but these.
project_files(files ".")
list(FILTER files EXCLUDE REGEX "\\.(json|png|safetensors|npy|tflite|tsv|gz)$|^LICENSE$|^tests/checks/prose\\.cmake$")

math(EXPR last "${phrases} - 1")
set(bad 0)
foreach(file IN LISTS files)
  file(READ ${SOURCE}/${file} text)
  string(TOLOWER "${text}" text)
  # Sentences continue across line ends.
  string(REGEX REPLACE "[ \t]*\n[ \t]*(///|//|#)?[ \t]*" " " text "${text}")
  foreach(i RANGE ${last})
    string(REGEX MATCH "${phrase_${i}}" match "${text}")
    if(match)
      message(NOTICE "${file}: not \"${match}\": write \"${instead_${i}}\"")
      math(EXPR bad "${bad} + 1")
    endif()
  endforeach()
endforeach()
if(bad GREATER 0)
  message(FATAL_ERROR "${bad} phrases that read backwards")
endif()
