#pragma once

#include <sstream>

namespace quantrain {

/// A stream to a string that throws std::bad_alloc where there is no memory; std::ostringstream
/// goes on, with text that lacks a part.
class TextStream : public std::ostringstream {
 public:
  TextStream() { exceptions(std::ios_base::badbit); }
};

}  // namespace quantrain
