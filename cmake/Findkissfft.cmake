# Finds the float version of kissfft by its header and library. The library may be static or shared. kissfft's own
# package file finds only the kind of library that BUILD_SHARED_LIBS selects, and Debian has only the shared library.
find_path(kissfft_INCLUDE_DIR kiss_fftr.h PATH_SUFFIXES kissfft)
find_library(kissfft_LIBRARY NAMES kissfft-float kissfft)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(kissfft REQUIRED_VARS kissfft_LIBRARY kissfft_INCLUDE_DIR)
if(kissfft_FOUND AND NOT TARGET kissfft::kissfft)
  add_library(kissfft::kissfft UNKNOWN IMPORTED)
  set_target_properties(kissfft::kissfft PROPERTIES
    IMPORTED_LOCATION "${kissfft_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${kissfft_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS kiss_fft_scalar=float)
endif()
mark_as_advanced(kissfft_INCLUDE_DIR kissfft_LIBRARY)
