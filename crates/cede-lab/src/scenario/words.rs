//! Enumerations whose values are words of the scenario format.
//!
//! One list gives the Rust enum, the words that are allowed, and their meaning in the reference.

/// An enumeration that is written as a word.
pub trait Words: Sized + Copy + PartialEq + 'static {
    /// Each word with its value and its meaning.
    const WORDS: &'static [(&'static str, Self, &'static str)];

    /// The value of a word.
    #[must_use]
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(name, ..)| *name == word).map(|&(_, value, _)| value)
    }

    /// The word of a value.
    #[must_use]
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value, _)| *value == self).map_or("", |(name, ..)| name)
    }
}

/// Declares an enum, the words of its values and what they mean.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $list:ident { $($(#[$attr:meta])* $variant:ident = $word:literal : $meaning:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $(#[doc = $meaning] $(#[$attr])* $variant,)+
        }

        impl $crate::scenario::words::Words for $name {
            const WORDS: &'static [(&'static str, Self, &'static str)] =
                &[$(($word, Self::$variant, $meaning),)+];
        }

        /// The words and their meanings, for the table of options.
        pub(crate) const $list: &[(&str, &str)] = &[$(($word, $meaning),)+];
    };
}
pub(crate) use words;
