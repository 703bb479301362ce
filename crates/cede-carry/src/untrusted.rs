//! Text that the other end chose, which may be anybody.

/// Characters that show nothing, or that turn what stands around them about.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// What strangers say, without what would move a terminal's cursor.
pub(crate) fn printable(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    text.trim_end().chars().map(|c| if is_unprintable(c) { '.' } else { c }).collect()
}
