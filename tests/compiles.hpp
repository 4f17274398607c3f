#pragma once

#include <type_traits>

/// Whether the expression compiles. In it, `temporary()` is an unnamed value of the type.
#define QUANTRAIN_COMPILES(type, expression)          \
  ([]<class T>(std::type_identity<T>) {               \
    return requires(T(*temporary)()) { expression; }; \
  }(std::type_identity<type>{}))
