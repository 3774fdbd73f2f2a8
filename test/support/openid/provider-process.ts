import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * An OpenID Connect provider as a process: oidc-provider with login pages that accept any name and
 * password. Prints its port, then reads the client's redirect URI.
 */
interface ProviderPackage {
  readonly default: new (issuer: string, configuration: object) => { callback(): RequestListener };
}

// its parent is gone
process.stdin.on('end', () => process.exit(0));
const { default: Provider } = (await import('oidc-provider' as string)) as ProviderPackage;
let handle: RequestListener = (_request, response) => response.writeHead(503).end();
const server = createServer((request, response) => handle(request, response));
server.listen(0, 'localhost');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
process.stdout.write(`${port}\n`);
const [line] = (await once(process.stdin, 'data')) as [Buffer];
handle = new Provider(`http://localhost:${port}`, {
  clients: [
    {
      client_id: 'sandpool',
      client_secret: 'secret of the client',
      redirect_uris: [line.toString().trim()],
      grant_types: ['authorization_code'],
      response_types: ['code'],
    },
  ],
  cookies: { keys: ['a key of this test'] },
  conformIdTokenClaims: false,
  claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
  findAccount: (_context: unknown, id: string) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      preferred_username: id,
      groups: id.startsWith('visitor') ? [] : ['platform'],
    }),
  }),
  features: { devInteractions: { enabled: true } },
}).callback();
process.stdout.write('ready\n');
