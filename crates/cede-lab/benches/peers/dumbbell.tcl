# The benchmark's dumbbell in ns-2 (Debian's package `ns2`): TCP/Linux senders with Reno, a Sack1 sink each.
# Usage: ns dumbbell.tcl FLOWS RATE_MBIT BUFFER_PACKETS SECONDS; prints the data packets that reached their sinks.
lassign $argv flows rate buffer seconds
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${rate}Mb 23ms DropTail
$ns queue-limit $left $right $buffer
$ns queue-limit $right $left 10000
for {set i 0} {$i < $flows} {incr i} {
    set a [$ns node]
    set b [$ns node]
    $ns duplex-link $a $left 1000Mb 1ms DropTail
    $ns duplex-link $right $b 1000Mb 1ms DropTail
    foreach {from to} [list $a $left $left $a $right $b $b $right] { $ns queue-limit $from $to 10000 }
    set tcp [new Agent/TCP/Linux]
    set sink($i) [new Agent/TCPSink/Sack1]
    $tcp set timestamps_ true
    $tcp set window_ 100000
    $tcp set packetSize_ 1448
    $ns at 0 "$tcp select_ca reno"
    $ns attach-agent $a $tcp
    $ns attach-agent $b $sink($i)
    $ns connect $tcp $sink($i)
    set ftp($i) [$tcp attach-app FTP]
    $ns at 0.0 "$ftp($i) start"
}
proc finish {} {
    global sink flows
    set packets 0
    for {set i 0} {$i < $flows} {incr i} { incr packets [expr {[$sink($i) set bytes_] / 1448}] }
    puts $packets
    exit 0
}
$ns at $seconds finish
$ns run
