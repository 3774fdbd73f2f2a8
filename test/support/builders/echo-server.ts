/** Uses programs that every Debian has. */
export const echoServer = (port: number): readonly string[] => ['perl', '-e', ECHO, String(port)];

const ECHO = `
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$ARGV[0]", Listen => 64, ReuseAddr => 1) or die "$!";
$SIG{CHLD} = 'IGNORE';
while (my $client = $server->accept) {
  next if fork;
  while (sysread $client, my $bytes, 65536) { while (length $bytes) { my $put = syswrite $client, $bytes; substr $bytes, 0, $put, '' } }
  exit;
}`;
