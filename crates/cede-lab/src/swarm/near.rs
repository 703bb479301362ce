//! Memory brought near before it is asked for.
//!
//! A swarm's connections are more than a processor's caches hold, and each packet is for another one than the packet before: much of the
//! time goes into waiting for what is known of it. Which one it will be is known a little earlier, and the processor is told then: when a
//! packet is sent, and again when few are in front of it on its last link, where its connection is looked up at the receiver; as it comes nearer, where that begins,
//! and all of it; when a peer's turn to send comes, the connection that is first in line. It is a hint: no result depends on it.

use prefetch_index::prefetch_index;

/// Octets of a line of the caches, of most processors.
const LINE_BYTES: usize = 64;

/// Brings as many lines near as `bytes` octets from `start` on take. Nothing is read, so that it is of no matter what stands
/// behind the value.
pub(super) fn bring<T>(start: &T, bytes: usize) {
    let step = const {
        assert!(size_of::<T>() > 0 && LINE_BYTES.is_multiple_of(size_of::<T>()), "steps of a line");
        LINE_BYTES / size_of::<T>()
    };
    (0..bytes.div_ceil(LINE_BYTES))
        .for_each(|line| prefetch_index(core::slice::from_ref(start), line * step));
}

/// Brings the beginning of the item at `index` near, without a look at it.
pub(super) fn bring_item<T>(items: &[T], index: usize) {
    prefetch_index(items, index);
}
