//! Which of a torrent's files come first.

use crate::storage::Layout;
use cede_bt::Bitfield;
use cede_bt::picker;

/// When a file is fetched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Turn {
    /// After all others.
    Last,
    /// Before those that come last.
    #[default]
    Usual,
    /// Before all others.
    First,
}

/// In which order a torrent is fetched.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Turns {
    /// The turn of each file, padding as well; those that are not in the list have the usual one.
    pub files: Vec<Turn>,
    /// From the beginning of the content on, and not the rarest pieces first.
    pub in_order: bool,
}

impl Turns {
    /// The same of pieces; one with parts of several files has the first turn of theirs.
    pub(super) fn of_pieces(&self, layout: &Layout) -> picker::Turns {
        let of = |file: usize| self.files.get(file).copied().unwrap_or_default();
        // Of padding nobody has said anything.
        let files = || (0..layout.files().len()).filter(|file| !layout.files()[*file].is_padding);
        let mut tiers = Vec::new();
        for turn in [Turn::First, Turn::Usual] {
            let (due, later): (Vec<usize>, Vec<usize>) = files().partition(|file| of(*file) >= turn);
            if !due.is_empty() && !later.is_empty() {
                let mut tier = Bitfield::none(layout.piece_count());
                for piece in due.into_iter().flat_map(|file| layout.pieces_of(file)) {
                    tier.insert(piece);
                }
                tiers.push(tier);
            }
        }
        picker::Turns { tiers, in_order: self.in_order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cede_bt::metainfo::{File, Metainfo, Writer};

    fn layout() -> Layout {
        let file = |name: &str, offset, length, is_padding| File {
            path: vec!["n".to_owned(), name.to_owned()],
            length,
            offset,
            is_padding,
            is_executable: false,
        };
        let files = vec![
            file("a", 0, 20_000, false),
            file("b", 20_000, 20_000, false),
            file("p", 40_000, 9_152, true),
            file("c", 49_152, 20_000, false),
        ];
        let pieces = vec![0; 5 * 20];
        let writer =
            Writer { name: "n".to_owned(), piece_length: 16_384, pieces, files, ..Writer::default() };
        Layout::new(&Metainfo::parse(&writer.encode()).unwrap().info)
    }

    fn tiers(files: &[Turn]) -> Vec<Vec<u32>> {
        let turns = Turns { files: files.to_vec(), in_order: false };
        turns.of_pieces(&layout()).tiers.iter().map(|tier| tier.iter().collect()).collect()
    }

    #[test]
    fn a_piece_has_the_first_turn_of_its_files() {
        use Turn::{First, Last, Usual};
        assert_eq!(tiers(&[]), [[0; 0]; 0]);
        assert_eq!(tiers(&[Usual, First]), [vec![1, 2]]);
        assert_eq!(tiers(&[Last, Usual, Last, First]), [vec![3, 4], vec![1, 2, 3, 4]]);
        assert_eq!(tiers(&[First, First, Last, First]), [[0; 0]; 0], "all alike, whatever padding is");
    }
}
