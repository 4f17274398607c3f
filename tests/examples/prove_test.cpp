#include <algorithm>
#include <string>

#include "tests/catch.hpp"
#include "tests/examples/workplace.hpp"

namespace quantrain {
namespace {

using test::Workplace;

const std::string kProve = "prove";

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("prove shows parity of each network, data set and number of bits", "[examples]") {
  const Workplace place;
  const std::string again = " --data '" + place.path("data") + "/'";
  REQUIRE(place.run(kProve,
                    "parity --bits 8,2 --limit 48 --network mnist_mlp,mnist_resnet" + again +
                        " --data '" + place.path("data") + '\'') == 0);
  const std::string out = place.read("out");
  CHECK(count(out, "\ndata ") == 2 * 2 * 2 + 1);  // data sets, networks, bits; the table's head
  CHECK(count(out, "mnist_resnet    W2A2       50") == 2);
  CHECK(count(out, "integers differ") == 0);
  CHECK_THAT(out, test::ContainsSubstring("All of it holds."));
  CHECK(place.read("err").empty());

  REQUIRE(place.run(kProve, "parity --bits 4 --limit 48 --network mnist_mlp --layers") == 0);
  CHECK(count(place.read("out"), ": 0 of ") ==
        7);  // input, flatten, three linear, logits, raw values
}

TEST_CASE("prove shows parity of random networks", "[examples]") {
  const Workplace place;
  REQUIRE(place.run(kProve, "random --count 3") == 0);
  CHECK_THAT(place.read("out"), test::ContainsSubstring("Random networks: 3, with "));
}

TEST_CASE("prove shows the errors of long sums", "[examples]") {
  const Workplace place;
  REQUIRE(place.run(kProve, "sums --most 10000") == 0);
  CHECK_THAT(place.read("out"), test::ContainsSubstring("linear's gradient by weights"));
  CHECK(count(place.read("out"), "TOO LARGE") == 0);
}

TEST_CASE("prove shows that any number of threads and any instruction set train the same model",
          "[examples]") {
  const Workplace place;
  REQUIRE(place.run(kProve, "determinism --limit 48 --network mnist_bncnn") == 0);
  CHECK(count(place.read("out"), "  yes\n") >= 2);
  CHECK(count(place.read("out"), "  NO\n") == 0);
}

TEST_CASE("prove shows what each way to choose ranges costs, whatever the number of threads",
          "[examples]") {
  const Workplace place;
  const std::string flags =
      "observers --epochs 1 --limit 48 --test 30 --bits 8,3 --seeds 0,1 --network mnist_mlp "
      "--only images --threads ";
  REQUIRE(place.run(kProve, flags + "1") == 0);
  const std::string out = place.read("out");
  CHECK(count(out, "data mnist_mlp") == 2 * 2);  // bits; after QAT, after PTQ
  CHECK_THAT(out, test::ContainsSubstring("recent 1024"));
  const std::string single = place.read("err");
  CHECK(count(single, "QAT W3 learned, seed ") == 2);
  CHECK(count(single, "float, seed ") == 2);
  REQUIRE(place.run(kProve, flags + "2") == 0);
  CHECK(place.read("out") == out);
}

TEST_CASE("prove measures each accuracy once", "[examples]") {
  const Workplace place;
  const std::string flags = "accuracy --epochs 1 --limit 48 --network mnist_mlp --results '" +
                            place.path("results") + "' --seeds ";
  REQUIRE(place.run(kProve, flags + "0") == 0);
  CHECK(count(place.read("results"), "\n") == 5);  // 8 and 4 bits, two simulations each; float
  REQUIRE(place.run(kProve, flags + "0,1") == 0);
  const std::string results = place.read("results");
  CHECK(count(results, "\n") == 10);
  CHECK(count(results, "\"seed\":1") == 5);
  REQUIRE(place.run(kProve, flags + "0,1") == 0);
  CHECK(place.read("results") == results);
  CHECK_THAT(place.read("out"), test::ContainsSubstring("deviation over 2 seeds"));

  write_file(place.path("results"), "{\"settings\": ");
  place.check_fails(kProve, flags + "0", "results: line 1 is no result");
}

TEST_CASE("prove measures rows of the table, each once, and prints what there is", "[examples]") {
  const Workplace place;
  const std::string flags = "table --results '" + place.path("results") +
                            "' --networks TFC --widths W2A2,W1A1 --seeds 0 --limit 64 "
                            "--epochs 1 --qat-epochs 1";
  REQUIRE(place.run(kProve, flags) == 0);
  // Float; W2A2 in four ways; W1A1 in three, since AdaRound needs more than two codes.
  CHECK(count(place.read("results"), "\n") == 8);
  const std::string distilled = "\"way\":\"distilled\",\"width\":\"W2A2\",\"qat_epochs\":3,";
  CHECK(count(place.read("results"), distilled) == 1);
  REQUIRE(place.run(kProve, flags) == 0);
  CHECK(count(place.read("results"), "\n") == 8);
  REQUIRE(place.run(kProve, flags + " --print") == 0);
  const std::string out = place.read("out");
  CHECK(count(out, "### TFC\n") == 1);
  CHECK(count(out, "| W8A8 |") == 0);                     // not measured
  CHECK(count(out, "Not measured yet: SFC, LFC,") == 0);  // not wanted
  CHECK(count(out, "| W2A2 | -") + count(out, "| W1A1 | -") == 0);
  // A network whose last epochs of QAT are frozen, with fewer epochs than these.
  const std::string frozen = "table --results '" + place.path("results") +
                             "' --networks mnist_bncnn --widths W4A4 --seeds 0 --limit 64 "
                             "--epochs 1 --qat-epochs 2 --ways qat";
  CHECK(place.run(kProve, frozen) == 0);
  CHECK(count(place.read("results"), "\n") == 10);
  CHECK(count(place.read("results"), "\"frozen_epochs\":1") == 1);
}

TEST_CASE("prove refuses invalid flags and missing data", "[examples]") {
  const Workplace place;
  for (const char* flags :
       {"parity --bits 0", "--network mnist", "disprove", "random --count 0", "sums --most 9999"})
    place.check_fails(kProve, flags, "");
  place.check_fails(kProve, "parity --data '" + place.path("nowhere") + '\'', "nowhere");
  CHECK(place.run(kProve, "accuracy --help") == 0);
  CHECK_THAT(place.read("out"), test::ContainsSubstring("--results"));
}

}  // namespace quantrain
