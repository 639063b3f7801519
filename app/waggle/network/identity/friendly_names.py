"""Friendly names: two words for a peer id, the same everywhere. They are neither unique nor trusted."""

_ADJECTIVES = (
    "Amber Ample Ashen Autumn Azure Bold Brave Breezy Bright Brisk Bronze Calm Cedar Clever Cloudy Copper Coral Cosy "
    "Crisp Curious Dappled Daring Dawn Dewy Drowsy Dusky Eager Early Earnest Fabled Fair Fleet Floral Frosty Gentle "
    "Gilded Glad Golden Graceful Green Hardy Hidden Honest Humble Ivory Jade Jolly Keen Kind Lively Lucky Lunar "
    "Mellow Merry Mild Misty Mossy Nimble Noble Olive Opal Patient Pearly Plucky Polite Proud Quick Quiet Rainy Ready "
    "Rosy Rowan Ruby Russet Rustic Sandy Scarlet Serene Shady Silver Sleek Snowy Solar Spry Starry Steady Sunny "
    "Tawny Tidy Velvet Violet Warm Wild Windy Winter Wise Witty Woolly Zesty"
)

_CREATURES = (
    "Acorn Alder Aster Badger Bee Beech Beetle Birch Bluebell Bramble Bumblebee Bunting Clover Crane Cricket Crocus "
    "Curlew Daisy Dolphin Dormouse Dove Dragonfly Egret Elder Elk Falcon Fennel Finch Firefly Foxglove Gannet Gecko Goose "
    "Hare Hawk Hazel Heather Hedgehog Heron Hornbeam Hoverfly Ibex Ibis Iris Ivy Jackdaw Jay Juniper Kestrel Kingfisher "
    "Kite Lapwing Larch Lark Lavender Lemur Lichen Linnet Lotus Lupin Lynx Magpie Maple Marmot Marten Martin Merlin Mole "
    "Moss Moth Newt Nightjar Nuthatch Oak Osprey Otter Owl Panda Petrel Pine Plover Poppy Puffin Quail Rabbit Raven "
    "Robin Rook Salmon Seal Shrew Skylark Sorrel Sparrow Squirrel Starling Stoat Stork Swallow Swan Swift Tern Thistle "
    "Thrush Thyme Toad Tulip Turtle Vole Wagtail Walnut Warbler Weasel Willow Wombat Wren Yarrow"
)

ADJECTIVES = tuple(_ADJECTIVES.split())
CREATURES = tuple(_CREATURES.split())
