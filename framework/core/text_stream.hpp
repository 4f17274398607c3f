#pragma once

#include <sstream>

namespace quantrain {

/// A string stream that throws std::bad_alloc if there is no memory. std::ostringstream would
/// continue silently with incomplete text.
class TextStream : public std::ostringstream {
 public:
  TextStream() { exceptions(std::ios_base::badbit); }
};

}  // namespace quantrain
