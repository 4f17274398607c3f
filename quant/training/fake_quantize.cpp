#include "framework/core/version.hpp"
