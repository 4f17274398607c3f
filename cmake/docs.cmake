# Adds the target `docs` if Doxygen is found. It writes HTML to <build>/html: a reference of the headers in framework/
# (without kernels/), layers/ and quant/, the pages of docs/, README.md, CHANGELOG.md and SECURITY.md, and the page of
# tools/. `docs` is not part of `all`. Doxygen's warnings are errors.
find_package(Doxygen QUIET)
if(NOT DOXYGEN_FOUND)
  return()
endif()
set(DOXYGEN_PROJECT_NAME quantrain)
set(DOXYGEN_HAVE_DOT NO)
set(DOXYGEN_QUIET YES)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
set(DOXYGEN_EXTRACT_ALL YES)
set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
set(DOXYGEN_SORT_MEMBER_DOCS NO)
set(DOXYGEN_FILE_PATTERNS *.hpp *.md)
set(DOXYGEN_EXCLUDE_PATTERNS */kernels/* */common/*)
set(DOXYGEN_EXCLUDE_SYMBOLS *::detail)
set(DOXYGEN_STRIP_FROM_PATH ${PROJECT_SOURCE_DIR})
set(DOXYGEN_STRIP_FROM_INC_PATH ${PROJECT_SOURCE_DIR})
set(DOXYGEN_USE_MDFILE_AS_MAINPAGE ${PROJECT_SOURCE_DIR}/README.md)
set(DOXYGEN_IMAGE_PATH ${PROJECT_SOURCE_DIR}/docs)
set(DOXYGEN_TOC_INCLUDE_HEADINGS 3)
# docstrings.sed turns the parts of a docstring (such as Shapes, Gradient, Throws and Source) into paragraphs. pages.sed
# removes links that Doxygen 1.9.4 cannot resolve.
set(DOXYGEN_FILTER_PATTERNS "*.hpp=${PROJECT_SOURCE_DIR}/cmake/docstrings.sed" "*.md=${PROJECT_SOURCE_DIR}/cmake/pages.sed")
doxygen_add_docs(docs framework layers quant tools/README.md README.md CHANGELOG.md SECURITY.md docs
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                 COMMENT "Writing the reference to ${PROJECT_BINARY_DIR}/html")
