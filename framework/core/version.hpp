#pragma once

namespace quantrain {

/// "major.minor.patch" of the library that is linked.
const char* version();

}  // namespace quantrain
