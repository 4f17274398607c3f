#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
using Listener = Catch::EventListenerBase;
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using Listener = Catch::TestEventListenerBase;
#endif

#include <cstdlib>

#include "framework/core/parallel.hpp"
#include "layers/init.hpp"

/// Seeds each test case, so that the weights that it draws do not depend on the cases before it.
/// With QUANTRAIN_TEST_ONE_THREAD in the environment, a case has one thread until it sets another
/// number.
class SeedEachCase : public Listener {
 public:
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    Listener::testCaseStarting(info);
    quantrain::manual_seed(0);
    if (std::getenv("QUANTRAIN_TEST_ONE_THREAD") != nullptr) quantrain::set_threads(1);
  }
};
CATCH_REGISTER_LISTENER(SeedEachCase)

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
