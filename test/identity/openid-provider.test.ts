import { expect } from 'chai';
import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { OpenIdProvider } from '../../src/services/identity/openid-provider.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';

type Claims = Record<string, unknown>;

/** What the provider of a test gives for a code, and how it is signed. */
interface Given {
  claims: (good: Claims) => Claims;
  header: Claims;
  key: KeyObject | undefined;
}

const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const KEYS = generateKeyPairSync('rsa', { modulusLength: 2_048 });

/** A provider that answers codes with whatever ID token a test wants. */
class HostileProvider {
  readonly #keys = KEYS;
  readonly #server: Server;
  readonly given: Given;
  nonce = '';
  /** Hash of the verifier that the authorization asked for. */
  challenge = '';

  constructor() {
    this.given = { claims: (good) => good, header: { alg: 'RS256', kid: 'k' }, key: this.own };
    this.#server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        const [status, answer] = this.#answer(request.url ?? '', new URLSearchParams(body));
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(answer));
      });
    });
  }

  get own(): KeyObject {
    return this.#keys.privateKey;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #answer(path: string, form: URLSearchParams): [number, object] {
    const { issuer } = this;
    if (path === '/.well-known/openid-configuration')
      return [
        200,
        {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256', 'none', 'HS256'],
          code_challenge_methods_supported: ['S256'],
        },
      ];
    if (path === '/jwks')
      return [
        200,
        { keys: [{ ...this.#keys.publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256' }] },
      ];
    const verifier = form.get('code_verifier') ?? '';
    if (createHash('sha256').update(verifier).digest('base64url') !== this.challenge)
      return [400, { error: 'invalid_grant' }];
    return [
      200,
      { access_token: 'a', token_type: 'Bearer', expires_in: 60, id_token: this.#idToken() },
    ];
  }

  #idToken(): string {
    const now = Math.floor(Date.now() / 1_000);
    const claims = this.given.claims({
      iss: this.issuer,
      sub: '248289761001',
      aud: 'sandpool',
      exp: now + 300,
      iat: now,
      auth_time: now,
      nonce: this.nonce,
      groups: ['platform'],
      preferred_username: 'ada',
    });
    const text = `${base64(this.given.header)}.${base64(claims)}`;
    const { key } = this.given;
    return `${text}.${key ? sign('sha256', Buffer.from(text), key).toString('base64url') : ''}`;
  }
}

describe('OpenID Connect', () => {
  let hostile: HostileProvider;
  let client: OpenIdProvider;
  beforeEach(async () => {
    hostile = new HostileProvider();
    await hostile.start();
    client = new OpenIdProvider(
      {
        issuer: hostile.issuer,
        clientId: 'sandpool',
        clientSecret: 'secret of the client',
        scopes: ['openid', 'profile'],
        roleClaim: 'groups',
        roles: { viewer: [], operator: ['platform'], admin: ['roots'] },
        userClaim: 'preferred_username',
      },
      quietLog,
    );
  });
  afterEach(() => hostile.stop());

  const REDIRECT = 'http://127.0.0.1:8080/console/openid/callback';

  const logIn = async ({ again = false, state = '', query = '' } = {}) => {
    const { url, expected } = await client.begin({ redirectUri: REDIRECT, again });
    const asked = new URL(url).searchParams;
    hostile.nonce = asked.get('nonce') ?? '';
    hostile.challenge = asked.get('code_challenge') ?? '';
    const answer = new URL(REDIRECT);
    answer.search = query || `code=c&state=${state || expected.state}`;
    return await client.finish(answer, expected);
  };

  it('identifies a person, and returns the role of their groups', async () => {
    const before = Date.now();
    const { authenticatedAt, ...person } = await logIn();

    expect(person).to.deep.equal({
      identity: `${hostile.issuer}#248289761001`,
      name: 'ada',
      role: 'operator',
      users: ['ada'],
    });
    expect(Number(authenticatedAt)).to.be.within(before - 1_000, Date.now());
  });

  it('uses the code flow with PKCE, and a new state and nonce each time', async () => {
    const [one, other] = [
      await client.begin({ redirectUri: REDIRECT, again: false }),
      await client.begin({ redirectUri: REDIRECT, again: true }),
    ];
    const asked = Object.fromEntries(new URL(one.url).searchParams);

    expect(asked).to.include({
      response_type: 'code',
      code_challenge_method: 'S256',
      scope: 'openid profile',
      redirect_uri: REDIRECT,
    });
    expect(asked).to.not.have.property('prompt');
    expect(asked, 'so that the provider says how old the login is').to.include({
      max_age: '43200',
    });
    expect(Object.fromEntries(new URL(other.url).searchParams)).to.include({
      prompt: 'login',
      max_age: '300',
    });
    for (const part of ['state', 'nonce', 'verifier'] as const)
      expect(one.expected[part]).to.have.length.at.least(32).and.to.not.equal(other.expected[part]);
  });

  it('gives no role to a person without a group role', async () => {
    for (const groups of [
      undefined,
      'visitors',
      ['visitors'],
      { platform: true },
      [['platform']],
    ]) {
      hostile.given.claims = (good) => ({ ...good, groups });
      expect((await logIn()).role, JSON.stringify(groups)).to.equal(undefined);
    }
  });

  it('lets unknown users read only, so that they approve nothing of their own', async () => {
    const many = Array.from({ length: 33 }, (_, n) => `user-${n}`);
    for (const preferred_username of [undefined, '', [], 7, many]) {
      hostile.given.claims = (good) => ({ ...good, preferred_username });
      expect((await logIn()).role, JSON.stringify(preferred_username)).to.equal('viewer');
    }
    hostile.given.claims = (good) => ({ ...good, preferred_username: many.slice(1) });
    expect(await logIn()).to.deep.include({ role: 'operator', users: many.slice(1) });
  });

  const attacks: Readonly<Record<string, (given: Given) => void>> = {
    'of another issuer': (given) =>
      (given.claims = (good) => ({ ...good, iss: 'https://issuer.example' })),
    'for another client': (given) => (given.claims = (good) => ({ ...good, aud: 'other' })),
    'for several, and issued for another': (given) =>
      (given.claims = (good) => ({ ...good, aud: ['sandpool', 'other'], azp: 'other' })),
    'with another nonce': (given) => (given.claims = (good) => ({ ...good, nonce: 'x' })),
    'without a nonce': (given) => (given.claims = (good) => ({ ...good, nonce: undefined })),
    'that has expired': (given) =>
      (given.claims = (good) => ({ ...good, exp: Number(good['iat']) - 60 })),
    'without a subject': (given) => (given.claims = (good) => ({ ...good, sub: undefined })),
    'that is not signed': (given) => {
      given.header = { alg: 'none' };
      given.key = undefined;
    },
    'with its signature cut off': (given) => (given.key = undefined),
    'signed by another key': (given) =>
      (given.key = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey),
    'with another algorithm': (given) => (given.header = { alg: 'HS256', kid: 'k' }),
  };
  for (const [what, attack] of Object.entries(attacks))
    it(`rejects an ID token ${what}`, async () => {
      attack(hostile.given);

      expect(await rejection(logIn())).to.include({ code: 'FORBIDDEN' });
    });

  it('rejects an answer with another state, an error, or the code of another browser', async () => {
    expect(await rejection(logIn({ state: 'another' }))).to.include({ code: 'FORBIDDEN' });
    expect(await rejection(logIn({ query: 'error=access_denied' }))).to.include({
      code: 'FORBIDDEN',
    });
    const { expected } = await client.begin({ redirectUri: REDIRECT, again: false });
    const stolen = new URL(`${REDIRECT}?code=c&state=${expected.state}`);
    expect(await rejection(client.finish(stolen, expected)), 'PKCE').to.include({
      code: 'FORBIDDEN',
    });
  });

  it('rejects an earlier login if a new one was required', async () => {
    hostile.given.claims = (good) => ({ ...good, auth_time: Number(good['iat']) - 3_600 });
    const silent = await logIn();

    expect(Date.now() - Number(silent.authenticatedAt)).to.be.at.least(3_500_000);
    expect(await rejection(logIn({ again: true }))).to.include({ code: 'FORBIDDEN' });
  });

  it('reports that the provider is unavailable, and retries the next time', async () => {
    await hostile.stop();
    const away = await rejection(client.begin({ redirectUri: REDIRECT, again: false }));

    expect(away).to.include({ code: 'UNAVAILABLE' });
    await hostile.start();
  });
});
