//! Where a sparse file has nothing: such stretches need not be read to be known as zeros.

use std::fs::File;

/// A stretch of a file that is all hole or all data, as far as the file system tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stretch {
    /// Nothing is there: it reads as zeros.
    pub is_hole: bool,
    /// Where it ends.
    pub end: u64,
}

/// The stretch that begins at `at`, in a file that ends at `bytes`. The file's position is another one afterwards.
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
pub(super) fn stretch(file: &File, at: u64, bytes: u64) -> Stretch {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    let data = match seek(file, SeekFrom::Data(at)) {
        Ok(data) => data,
        // No data from here on.
        Err(Errno::NXIO) => bytes,
        Err(_) => return Stretch { is_hole: false, end: bytes },
    };
    if data > at {
        return Stretch { is_hole: true, end: data.min(bytes) };
    }
    let hole = seek(file, SeekFrom::Hole(at)).unwrap_or(bytes);
    Stretch { is_hole: false, end: hole.clamp(at, bytes) }
}

/// Elsewhere everything is read.
#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd")))]
pub(super) fn stretch(_: &File, _: u64, bytes: u64) -> Stretch {
    Stretch { is_hole: false, end: bytes }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn stretches_follow_each_other_to_the_end() {
        let path = std::env::temp_dir().join(format!("cede-holes-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.set_len(8 << 20).unwrap();
        file.write_all_at(&[1; 5000], 4 << 20).unwrap();
        let (mut at, mut holes) = (0, 0);
        while at < 8 << 20 {
            let found = stretch(&file, at, 8 << 20);
            assert!(found.end > at, "{at} {found:?}");
            // What has been written is in no hole, on any file system.
            let written = (4_u64 << 20)..(4 << 20) + 5000;
            assert!(!found.is_hole || found.end <= written.start || at >= written.end, "{at} {found:?}");
            holes += if found.is_hole { found.end - at } else { 0 };
            at = found.end;
        }
        println!("{holes} octets are holes");
        std::fs::remove_file(path).unwrap();
    }
}
