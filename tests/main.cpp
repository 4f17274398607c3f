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

#include "layers/init.hpp"

/// Seeds each test case, so that the weights that it draws do not depend on the cases before it.
class SeedEachCase : public Listener {
 public:
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    Listener::testCaseStarting(info);
    quantrain::manual_seed(0);
  }
};
CATCH_REGISTER_LISTENER(SeedEachCase)

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
