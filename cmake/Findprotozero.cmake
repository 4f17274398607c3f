# Finds protozero, which is headers only. Debian's package has no package file for CMake.
find_path(protozero_INCLUDE_DIR protozero/pbf_reader.hpp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(protozero REQUIRED_VARS protozero_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libprotozero-dev, or set protozero_ROOT")
if(protozero_FOUND AND NOT TARGET protozero::protozero)
  add_library(protozero::protozero INTERFACE IMPORTED)
  set_target_properties(protozero::protozero PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${protozero_INCLUDE_DIR}")
endif()
mark_as_advanced(protozero_INCLUDE_DIR)
