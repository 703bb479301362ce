// The benchmark's dumbbell in ns-3 (Debian's package `libns3-dev`): bulk TCP flows, NewReno with SACK.
// Usage: dumbbell FLOWS RATE_MBIT BUFFER_PACKETS SECONDS; prints the data packets that reached their sinks.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace ns3;

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: dumbbell FLOWS RATE_MBIT BUFFER_PACKETS SECONDS\n");
    return 2;
  }
  const uint32_t flows = std::atoi(argv[1]);
  const std::string rate = std::string(argv[2]) + "Mbps";
  const std::string buffer = std::string(argv[3]) + "p";
  const double seconds = std::atof(argv[4]);

  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));

  NodeContainer routers;
  routers.Create(2);
  InternetStackHelper stack;
  stack.Install(routers);
  PointToPointHelper bottleneck, access;
  bottleneck.SetDeviceAttribute("DataRate", StringValue(rate));
  bottleneck.SetChannelAttribute("Delay", StringValue("23ms"));
  bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(buffer));
  access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
  access.SetChannelAttribute("Delay", StringValue("1ms"));
  access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000p"));

  TrafficControlHelper control;
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  auto join = [&](PointToPointHelper &link, Ptr<Node> a, Ptr<Node> b) {
    NetDeviceContainer devices = link.Install(a, b);
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    control.Uninstall(devices);
    addresses.NewNetwork();
    return interfaces;
  };
  join(bottleneck, routers.Get(0), routers.Get(1));

  std::vector<Ptr<PacketSink>> sinks;
  for (uint32_t i = 0; i < flows; ++i) {
    NodeContainer ends;
    ends.Create(2);
    stack.Install(ends);
    join(access, ends.Get(0), routers.Get(0));
    Ipv4InterfaceContainer right = join(access, ends.Get(1), routers.Get(1));
    InetSocketAddress to(right.GetAddress(0), 9);
    PacketSinkHelper sink("ns3::TcpSocketFactory", to);
    sinks.push_back(DynamicCast<PacketSink>(sink.Install(ends.Get(1)).Get(0)));
    BulkSendHelper bulk("ns3::TcpSocketFactory", to);
    bulk.Install(ends.Get(0));
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  Simulator::Stop(Seconds(seconds));
  Simulator::Run();
  uint64_t packets = 0;
  for (const auto &sink : sinks) packets += sink->GetTotalRx() / 1448;
  std::printf("%llu\n", static_cast<unsigned long long>(packets));
  Simulator::Destroy();
}
