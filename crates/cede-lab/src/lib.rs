//! Placeholder head, replaced as the room is furnished.
