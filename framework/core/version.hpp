#pragma once

namespace quantrain {

/// "major.minor.patch" of the linked library.
const char* version();

}  // namespace quantrain
