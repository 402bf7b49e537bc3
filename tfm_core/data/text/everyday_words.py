"""What a person types who does not know the toy grammar, and the nearest word that is in it."""

from __future__ import annotations

_NEAREST: dict[str, tuple[str, ...]] = {
    # people
    "friend": ("he", "she", "i", "you", "we", "they", "man", "woman", "person", "someone", "guy"),
    "child": ("boy", "girl", "kid", "children", "kids", "baby", "son", "daughter"),
    "teacher": ("professor", "tutor", "mother", "father", "mom", "dad", "parent"),
    "student": ("pupil", "learner", "brother", "sister", "people", "everybody"),
    "doctor": ("nurse", "physician", "dentist"),
    # animals
    "dog": ("puppy", "dogs", "wolf", "horse"),
    "cat": ("kitten", "cats", "mouse", "lion", "tiger"),
    "rabbit": ("bunny", "hare", "bird", "duck"),
    "bear": ("panda", "monkey", "animal"),
    # food and things
    "apple": ("fruit", "orange", "pear", "banana", "peach", "food"),
    "cake": ("bread", "pizza", "cookie", "pie", "breakfast", "lunch", "dinner", "ice"),
    "carrot": ("vegetable", "potato", "rice", "soup", "tomato"),
    "book": ("letter", "newspaper", "story", "novel", "paper", "song"),
    "bag": ("car", "bicycle", "bike", "bus", "box", "phone", "computer", "toy"),
    "hat": ("shirt", "coat", "shoes", "dress", "cap"),
    "chair": ("table", "desk", "sofa", "bed"),
    "flower": ("tree", "rose", "plant", "picture"),
    # places
    "room": ("house", "home", "kitchen", "office", "hotel"),
    "market": ("shop", "store", "supermarket", "town", "city"),
    "park": ("beach", "forest", "street", "zoo", "river"),
    "garden": ("yard", "field", "farm"),
    "school": ("university", "college", "class", "library"),
    # times
    "today": ("now", "tonight", "tomorrow", "morning"),
    "daily": ("always", "often", "usually", "everyday", "sometimes"),
    # verbs
    "likes": ("loves", "wants", "needs", "enjoys", "hates", "knows"),
    "like": ("love", "want", "need", "enjoy", "hate", "know"),
    "liked": ("loved", "wanted", "needed", "enjoyed", "hated", "knew"),
    "sees": ("looks", "watches", "reads", "hears"),
    "see": ("look", "watch", "read", "hear"),
    "saw": ("looked", "watched", "heard"),
    "comes": ("goes", "walks", "runs", "travels", "drives"),
    "come": ("go", "walk", "run", "travel", "drive"),
    "came": ("went", "walked", "ran", "travelled", "drove"),
    "buys": ("gets", "takes", "sells", "brings"),
    "buy": ("get", "take", "sell", "bring"),
    "bought": ("got", "took", "sold", "brought"),
    "draws": ("paints", "writes", "makes"),
    "draw": ("paint", "write", "make"),
    "drew": ("painted", "wrote", "made"),
    "eats": ("drinks", "cooks", "tastes"),
    "eat": ("drink", "cook", "taste"),
    "ate": ("drank", "cooked", "tasted"),
    "meets": ("visits", "calls", "talks"),
    "meet": ("visit", "call", "talk"),
    "met": ("visited", "called", "talked"),
    # adjectives and small words
    "big": ("large", "huge", "great", "tall"),
    "small": ("little", "tiny", "short"),
    "cute": ("pretty", "beautiful", "nice", "lovely", "sweet"),
    "kind": ("good", "friendly", "happy"),
    "the": ("my", "your", "his", "her", "our", "their", "this", "that", "its"),
    "a": ("some", "one", "every", "any", "another"),
    "in": ("on", "inside", "near", "by"),
    "to": ("into", "towards", "toward"),
    # reviews
    "film": ("movie",),
    "lovely": ("wonderful",),
    "awful": ("terrible", "horrible"),
}
EVERYDAY: dict[str, str] = {word: near for near, words in _NEAREST.items() for word in words}
