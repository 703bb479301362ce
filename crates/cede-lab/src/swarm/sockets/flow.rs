//! How much of what a connection takes has been offered to the engine, and what it has written.

/// What the engine has written to a connection.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Flow {
    /// Octets handed to the transport.
    written: u64,
    /// Room that the engine has been told of and has not used.
    offered: u32,
    /// The most that was under way, in octets, where the kernel's buffer is that of Linux.
    most_under_way: u32,
}

/// What Linux's buffer for sending holds: twice the window, at least twice ten segments, each with room for 2,304 octets, of which what is
/// kept beside the data takes a fifth (`tcp_sndbuf_expand`; measured with `ss`).
fn kernel_buffer_bytes(most_under_way: u32, mss_bytes: u32) -> u32 {
    let segments = most_under_way.div_ceil(mss_bytes).max(10);
    segments * 2 * 2304 / 5 * 4
}

impl Flow {
    pub(super) fn write(&mut self, bytes: u32) {
        self.written += u64::from(bytes);
        self.offered = self.offered.saturating_sub(bytes);
    }

    /// The room that the engine is to be told of, where the transport has sent so many octets and takes `writable` more: what
    /// has not been acknowledged fills its buffer too.
    pub(super) fn offer(&mut self, sent: u64, writable: u32, write_ahead: u32) -> Option<u32> {
        let unsent = self.written.saturating_sub(sent).min(u64::from(u32::MAX)) as u32;
        let room = write_ahead.saturating_sub(unsent).min(writable);
        // Half a buffer at a time: one write serves many packets.
        self.offer_room(room, write_ahead / 2)
    }

    /// The same of a connection of the kernel, whose buffer holds what has not been acknowledged too: it takes more once a third is free.
    pub(super) fn offer_kernel(
        &mut self,
        sent: u64,
        (used, writable): (u32, u32),
        mss_bytes: u32,
    ) -> Option<u32> {
        let unsent = self.written.saturating_sub(sent).min(u64::from(u32::MAX)) as u32;
        self.most_under_way = self.most_under_way.max(used.saturating_sub(unsent));
        let buffer = kernel_buffer_bytes(self.most_under_way, mss_bytes);
        self.offer_room(buffer.saturating_sub(used).min(writable), buffer / 3)
    }

    fn offer_room(&mut self, room: u32, least: u32) -> Option<u32> {
        let is_news = room >= least && room > self.offered;
        is_news.then(|| {
            self.offered = room;
            room
        })
    }
}
