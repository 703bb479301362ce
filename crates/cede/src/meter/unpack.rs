//! What is inside of a compressed capture.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// zstd frames whose window is longer than two to this power are refused: 128 MiB, what the program `zstd` takes unless it is
/// told otherwise. A frame says what it needs before it has any data, so a short one may ask for gigabytes.
const WINDOW_LOG_MAX: u32 = 27;
/// The first octets of zstd's frames (RFC 8878, sections 3.1.1 and 3.1.2); those of skippable ones but for four bits.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ZSTD_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// What other compressed files begin with, what they are called, and what unpacks them to its standard output.
const UNREAD: [(&[u8], &str, &str); 4] = [
    (&[0xfd, b'7', b'z', b'X'], "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "lz4 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// What is inside, by the first octets: gzip (RFC 1952), zstd (RFC 8878), or the octets themselves. Several members or frames one
/// behind the other are one capture. Zeros behind members of gzip fill blocks of tapes and of disks, and are passed over, as by gzip(1);
/// of what else follows gzip says that it ignores it, and here it is told as damage: it may be what is left of a member.
///
/// # Errors
/// Where there is nothing, or what others compress to and is not read here, and whatever the source says.
pub fn decompressed<'a>(mut source: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut front = Vec::new();
    source.by_ref().take(4).read_to_end(&mut front)?;
    if front.is_empty() {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "it is empty"));
    }
    if let Some((_, name, command)) = UNREAD.iter().find(|(magic, ..)| front.starts_with(magic)) {
        let words = format!(
            "compressed with {name}, which is not read here: pipe what `{command}` makes of it to `-`"
        );
        return Err(io::Error::new(ErrorKind::Unsupported, words));
    }
    let magic = front.clone();
    let whole = io::Cursor::new(front).chain(source);
    let is_skippable = |rest: &[u8], first: u8| rest == ZSTD_SKIPPABLE && first >> 4 == 5;
    Ok(match magic[..] {
        [0x1f, 0x8b, ..] => Box::new(Members::new(whole)),
        [first, ref rest @ ..] if magic == ZSTD || is_skippable(rest, first) => Box::new(Frames::new(whole)?),
        _ => Box::new(whole),
    })
}

/// The members of gzip, one behind the other; none behind the last one.
struct Members<R: Read>(Option<GzDecoder<BufReader<R>>>);

impl<R: Read> Members<R> {
    fn new(source: R) -> Self {
        Self(Some(GzDecoder::new(BufReader::new(source))))
    }

    /// Goes on with the next member, where there is one.
    fn begin_next(&mut self) -> io::Result<()> {
        let Some(member) = &mut self.0 else { return Ok(()) };
        let is_over = skip_zeros(member.get_mut())?;
        self.0 = self.0.take().filter(|_| !is_over).map(|member| GzDecoder::new(member.into_inner()));
        Ok(())
    }
}

/// Passes over zeros; whether nothing follows.
fn skip_zeros(source: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let octets = source.fill_buf()?;
        let (len, zeros) = (octets.len(), octets.iter().take_while(|&&octet| octet == 0).count());
        source.consume(zeros);
        if zeros < len || len == 0 {
            return Ok(len == 0);
        }
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(out).map_err(|error| told("gzip", error))?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            self.begin_next()?;
        }
        Ok(0)
    }
}

/// The frames of zstd.
struct Frames<R: Read>(zstd::stream::read::Decoder<'static, BufReader<R>>);

impl<R: Read> Frames<R> {
    fn new(source: R) -> io::Result<Self> {
        let mut decoder = zstd::stream::read::Decoder::new(source)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Ok(Self(decoder))
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| told("zstd", error))
    }
}

/// The library's words, and better ones where they are none for a reader of captures.
fn told(name: &str, error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::Interrupted {
        return error;
    }
    let words = error.to_string();
    let better = match &*words {
        "incomplete deflate stream" | "unexpected end of file" => "the file ends within a member",
        "invalid gzip header" => "what is no member follows",
        "corrupt deflate stream" => "the data are damaged",
        "incomplete frame" => "the file ends within a frame",
        "Unknown frame descriptor" => "what is no frame follows",
        "Restored data doesn't match checksum" | "corrupt gzip stream does not have a matching checksum" => {
            "the data differ from their checksum"
        }
        "Frame requires too much memory for decoding" => {
            "a frame asks for a window of more than 128 MiB (made with --long or --ultra?); zstd -d --memory=2048MB reads it"
        }
        other => other,
    };
    io::Error::new(error.kind(), format!("{name}: {better}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(octets: Vec<u8>) -> (Vec<u8>, Result<usize, String>) {
        let mut out = Vec::new();
        let mut source = decompressed(Box::new(io::Cursor::new(octets))).unwrap();
        let end = source.read_to_end(&mut out).map_err(|error| error.to_string());
        (out, end)
    }

    #[test]
    fn zeros_behind_members_of_gzip_are_passed_over_and_what_else_follows_is_told() {
        let content: Vec<u8> = (0..100_000_u32).map(|k| (k.wrapping_mul(k) >> 7) as u8).collect();
        let member = gzip(&content);
        let twice = [&content[..], &content].concat();
        // More than a buffer of them, too.
        for zeros in [0, 1, 511, 100_000] {
            let padded = [&member[..], &vec![0; zeros]].concat();
            assert_eq!(unpacked(padded.clone()), (content.clone(), Ok(content.len())), "{zeros}");
            assert_eq!(
                unpacked([&padded[..], &padded].concat()),
                (twice.clone(), Ok(twice.len())),
                "{zeros}"
            );
            let (found, end) = unpacked([&padded[..], b"something else"].concat());
            assert_eq!((found, end), (content.clone(), Err("gzip: what is no member follows".to_owned())));
        }
        let (_, end) = unpacked(member[..member.len() - 5].to_vec());
        assert_eq!(end, Err("gzip: the file ends within a member".to_owned()));
        assert_eq!(unpacked([gzip(&[]), member].concat()).0, content);
    }
}
