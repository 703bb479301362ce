# One Reno flow beside N flows of another controller in ns-2, to be held against ours (examples/background_share.rs, docs/validation.md).
#
#   ns background_ns2.tcl CONTROLLER N SEED FILE [MBIT_PER_S ONE_WAY_MS BUFFER_PACKETS PACKET_OCTETS]
#
# CONTROLLER is `lp`, `vegas` or another of those that ns-2 has from Linux. It appends a line to FILE: N, Reno's share in per cent, and the
# part of the link that is used. What TCP-LP itself says goes to the standard output. Its numbers are as wide as the program's: 64 bits
# with Debian's `ns2`, 32 with `ns2:i386`.
proc argument {at otherwise} {
    global argv
    if {[llength $argv] > $at} { return [lindex $argv $at] }
    return $otherwise
}
set controller [argument 0 lp]
set count [argument 1 5]
set seed [argument 2 1]
set file [argument 3 shares.txt]
set mbps [argument 4 10]
set one_way_ms [argument 5 25]
set buffer [argument 6 100]
set octets [argument 7 1500]
set duration_s 120

set ns [new Simulator]
set near [$ns node]
set far [$ns node]
$ns duplex-link $near $far [expr $mbps]Mb [expr $one_way_ms - 2]ms DropTail
$ns queue-limit $near $far $buffer
$ns queue-limit $far $near 10000
set flows [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $near $far] $flows

# To what is sent ns-2 adds 40 octets, and 10 for timestamps.
Agent/TCP set packetSize_ [expr $octets - 50]
Agent/TCP set window_ 10000
Agent/TCP set minrto_ 0.2
Agent/TCPSink set ts_echo_rfc1323_ true
Agent/TCPSink set ts_echo_bugfix_ true
set random [new RNG]
$random seed $seed
for {set i 0} {$i <= $count} {incr i} {
    set sender [$ns node]
    set receiver [$ns node]
    $ns duplex-link $sender $near 1000Mb 1ms DropTail
    $ns duplex-link $far $receiver 1000Mb 1ms DropTail
    $ns queue-limit $sender $near 100000
    set tcp [new Agent/TCP/Linux]
    $tcp set timestamps_ true
    $tcp set tcpTick_ 0.001
    $tcp set windowInit_ 2
    $tcp set fid_ $i
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $sender $tcp
    $ns attach-agent $receiver $sink
    $ns connect $tcp $sink
    $ns at 0 "$tcp select_ca [expr {$i == 0 ? "reno" : $controller}]"
    set application [new Application/FTP]
    $application attach-agent $tcp
    $ns at [$random uniform 0 0.1] "$application start"
}

proc finish {} {
    global flows count file mbps duration_s
    set all 0
    set reno 0
    foreach flow [$flows flows] {
        set all [expr $all + [$flow set bdepartures_]]
        if {[$flow set flowid_] == 0} { set reno [$flow set bdepartures_] }
    }
    set lines [open $file a]
    puts $lines [format "%d %.2f %.4f" $count [expr 100.0 * $reno / $all] [expr $all * 8e-6 / $duration_s / $mbps]]
    close $lines
    exit 0
}
$ns at $duration_s finish
$ns run
