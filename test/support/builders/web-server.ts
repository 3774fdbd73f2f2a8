/**
 * Uses programs that every Debian has. `/status/N` answers N, `/hang` never, `/stop` ends it;
 * others 200 with the request's head.
 */
export const webServer = (port: number): readonly string[] => ['perl', '-e', SERVER, String(port)];

const SERVER = `
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$ARGV[0]", Listen => 64, ReuseAddr => 1) or die "$!";
$SIG{CHLD} = 'IGNORE';
my $main = $$;
while (1) {
  my $client = $server->accept or next;
  next if fork;
  my $head = '';
  while ($head !~ /\\r\\n\\r\\n/) { sysread $client, $head, 65536, length $head or exit }
  sleep 600 if $head =~ m{^GET /hang };
  kill 'KILL', $main if $head =~ m{^GET /stop };
  my ($status) = $head =~ m{^GET /status/(\\d+) };
  $status ||= 200;
  syswrite $client, "HTTP/1.1 $status Said\\r\\nContent-Length: " . length($head) . "\\r\\nConnection: close\\r\\n\\r\\n$head";
  exit;
}`;
