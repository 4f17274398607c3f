#include "framework/core/version.hpp"

namespace quantrain {

const char* version() { return QUANTRAIN_VERSION; }

}  // namespace quantrain
