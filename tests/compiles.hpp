#pragma once

#include <type_traits>

/// Whether an expression compiles in which `temporary()` is an unnamed value of this type.
#define QUANTRAIN_COMPILES(type, expression)          \
  ([]<class T>(std::type_identity<T>) {               \
    return requires(T(*temporary)()) { expression; }; \
  }(std::type_identity<type>{}))
