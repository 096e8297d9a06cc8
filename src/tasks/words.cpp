// SPDX-License-Identifier: Apache-2.0
#include "tasks/words.h"

#include <algorithm>
#include <string_view>

#include "tasks/haystack.h"

namespace kvs::inline tasks {
namespace {

// RULER draws from the lists of a Python package; these lists of everyday words are this project's own.
constexpr std::string_view kAdjectives =
    "able amber ample ancient bitter bold brave brief bright brisk broad calm careful cheerful clean clear clever "
    "cold common crisp curious damp daring dark deep dense distant dry dull eager early easy empty equal even "
    "exact faint fair famous fast fierce fine firm flat fond formal frank free fresh frozen gentle giant glad "
    "golden grand grateful gray great happy hard hasty heavy hidden hollow honest huge humble hungry idle jolly "
    "keen kind large late lazy lean light little lively local lonely long loud loyal lucky mellow merry mild "
    "modest narrow neat new nimble noble noisy odd old open orderly pale patient plain polite proud pure quick "
    "quiet rapid rare ready rich ripe robust rough round royal rude rural sacred sad safe salty shallow sharp "
    "shiny short shy silent silver simple sleepy slender slow small smooth sober soft solid sour spare stable "
    "steady steep stiff strange strict strong sturdy sudden sunny sweet swift tall tame tender thick thin tidy "
    "tiny tough tranquil true urban useful vague vast vivid warm weak weary wet whole wide wild wise witty wooden "
    "young zealous";

constexpr std::string_view kNouns =
    "acorn actor anchor angle ankle answer apple apron arch armor arrow artist autumn badge baker balcony banana "
    "banner barrel basin basket beach beacon beam bean bear bell bench berry bishop blanket blossom board boat "
    "bone border bottle boulder bowl branch bread brick bridge broom brush bucket bundle butter button cabin "
    "cable camel camera canal candle canoe canvas carpet castle cave cellar chain chair chalk chapel cherry chest "
    "chimney circle citizen clay cliff cloak clock cloud clover coast coin collar comet compass copper coral "
    "cotton couch cousin cradle crane creek crown crystal cup curtain daisy dancer desert desk diary doctor "
    "dolphin donkey door dragon drawer drum eagle echo elbow engine fabric falcon farmer feather fence ferry "
    "fiddle field finger flame flask flute forest fork fountain fox frame garden gate giraffe glacier glass globe "
    "glove goat grain grape gravel guitar hammer harbor harp hatch hawk hazel helmet heron hill hinge honey "
    "horizon horn horse hotel iceberg insect island ivory jacket jewel judge jungle kettle kitchen kite knight "
    "ladder lagoon lake lamp lantern leaf lemon lens letter lever library lily lion lizard lobster locket lumber "
    "magnet mango mantle map marble market mask meadow medal melon merchant meteor mirror mitten monkey moon moss "
    "motor mountain museum mushroom needle nest novel oak oasis ocean olive onion orange orbit orchard otter oven "
    "owl oyster paddle palace panther paper parade parrot pasture path peach pearl pebble pencil pepper piano "
    "pigeon pillow pilot pine planet plate plow poet pond pony poplar porch potato prince pump puzzle quarry "
    "queen quilt rabbit radio raft rain raven reef ribbon river robin rocket roof rope rose saddle sailor salmon "
    "sand satchel scarf school scroll seal shadow shell shepherd ship shovel signal silk singer sketch sled snail "
    "soldier sparrow spider spoon squirrel stable staff stage star statue stone stork storm stove stream street "
    "summit swan sword table tailor teapot temple thistle thread throne thunder ticket tiger timber toast tower "
    "trail train trumpet tulip tunnel turtle valley vase velvet vessel village vine violin wagon walnut walrus "
    "water whale wheat wheel whistle willow window winter wizard wolf yard zebra";

constexpr std::string_view kVerbs =
    "accept admire advise agree allow amuse appear arrange arrive ask attend avoid bake bathe become begin behave "
    "belong bend blend blink boil borrow bounce bow breathe bring build burn carry carve catch celebrate change "
    "chase choose climb collect combine compare consider continue cook copy count cover crawl create cross cry "
    "dance decide deliver depend describe design dig discover divide dream drift drink drive earn eat educate "
    "enjoy enter escape examine explain explore fall feed fetch fight fill find finish float fly fold follow "
    "forget forgive gather give glow greet grow guess guide happen hear help hide hire hold hope hurry imagine "
    "improve inspect invent invite join jump knit know laugh lead learn leave lend lift listen live look lose "
    "make measure meet melt mend miss move notice obey observe offer order own paint pause pay peel perform phone "
    "pick play plunge point pour praise pray prefer prepare press print promise protect pull push race raise "
    "reach read receive recover reduce refuse remain remember remove repair repeat reply rescue rest return ride "
    "ring rise rush sail save scatter seek select sell send serve settle sew shake share shine shout sing sit "
    "slide smile sort speak spell spend spin stand start stay steer stretch study succeed suggest supply support "
    "swim swing talk teach tell thank think throw touch travel trust try turn unite use visit wait wake walk "
    "wander warn wash watch weave weigh whisper win wish wonder work write yawn";

std::vector<std::string> in_order(std::vector<std::string> words) {
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

}  // namespace

const std::vector<std::string>& plain_words() {
  static const std::vector<std::string> kWords = [] {
    std::vector<std::string> words;
    for (const std::string_view list : {kNouns, kAdjectives, kVerbs})
      for (const std::string_view word : words_of(list)) words.emplace_back(word);
    return in_order(std::move(words));
  }();
  return kWords;
}

const std::vector<std::string>& compound_words() {
  static const std::vector<std::string> kWords = [] {
    std::vector<std::string> words;
    for (const std::string_view adjective : words_of(kAdjectives))
      for (const std::string_view noun : words_of(kNouns)) {
        words.emplace_back(adjective);
        words.back().append("-").append(noun);
      }
    return in_order(std::move(words));
  }();
  return kWords;
}

}  // namespace kvs::inline tasks
