#![no_std]
//! Placeholder head, replaced as the room is furnished.
extern crate alloc;
