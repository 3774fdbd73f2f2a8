import { expect } from 'chai';
import fc from 'fast-check';
import { randomInt } from 'node:crypto';
import { takeTarget } from '../../src/http/limits/request-head.ts';
import {
  documentedOperations,
  operationAt,
  PAGES,
  pathOf,
} from '../support/harness/documented-answers.ts';
import { exchangeRaw, parseRaw } from '../support/harness/http-client.ts';
import { aServer, type TestServer } from './a-server.ts';
import { runs } from '../support/harness/runs.ts';

describe('the target of a request', () => {
  const taken = (method: string, url: string, host: string | undefined = 'asked'): unknown => {
    const request = { method, url, headers: host === undefined ? {} : { host } };
    return takeTarget(request) ? [request.url, request.headers.host] : undefined;
  };

  it('is the path and query unchanged, with escapes and empty segments', () => {
    for (const target of [
      '/',
      '/sandboxes',
      '//x/y',
      '/a%2Fb/%zz',
      '/a?',
      '/a?b=/c?d',
      '/a:b@c',
      '/a\\b|[c]',
    ])
      expect(taken('GET', target)).to.deep.equal([target, 'asked']);
  });

  it('is the path of an absolute form, whose host is used', () => {
    expect(taken('GET', 'http://given:80/a?b')).to.deep.equal(['/a?b', 'given:80']);
    expect(taken('POST', 'HTTPS://[::1]:8080//a')).to.deep.equal(['//a', '[::1]:8080']);
    expect(taken('GET', 'http://given')).to.deep.equal(['/', 'given']);
    expect(taken('GET', 'http://given?a')).to.deep.equal(['/?a', 'given']);
  });

  it('does not replace a missing Host', () => {
    const request = { method: 'GET', url: 'http://given/a', headers: {} };
    expect(takeTarget(request)).to.equal(true);
    expect(request.headers).to.deep.equal({});
  });

  it('can be * for OPTIONS only', () => {
    expect(taken('OPTIONS', '*')).to.deep.equal(['*', 'asked']);
    expect(taken('GET', '*')).to.equal(undefined);
  });

  for (const [what, target] of [
    ['a fragment', '/sandboxes#x'],
    ['an empty fragment', '/sandboxes?a#'],
    ['another scheme', 'ftp://x/a'],
    ['user information', 'http://u:p@x/a'],
    ['no host', 'http:///a'],
    ['half an IPv6 address', 'http://[::1/a'],
    ['a port that is none', 'http://x:y/a'],
    ['an authority alone', 'x:80'],
    ['nothing', ''],
    ['a relative path', 'sandboxes'],
  ] as const) {
    it(`is refused with ${what}`, () => expect(taken('GET', target)).to.equal(undefined));
  }

  describe('on the wire', function () {
    let server: TestServer;
    before(async () => {
      server = await aServer();
    });
    after(() => server.stop());

    const ask = async (method: string, target: string, headers = '') =>
      parseRaw(
        await exchangeRaw(
          server.port,
          `${method} ${target} HTTP/1.1\r\nHost: x\r\n${headers || 'Connection: close\r\n'}\r\n`,
        ),
      );

    it('gets 400 if it is invalid, even with an upgrade', async () => {
      for (const target of [
        '/sandboxes#x',
        '/healthz#',
        'ftp://x/healthz',
        'http://[::1/healthz',
        'http://u@x/healthz',
        '*',
      ]) {
        for (const headers of [
          '',
          'Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
        ]) {
          const { status, json } = await ask('GET', target, headers);
          expect([target, status, json.errorCode, json.detail]).to.deep.equal([
            target,
            400,
            'INVALID_ARGUMENT',
            { field: 'request' },
          ]);
        }
      }
    });

    it('is interpreted identically in all parts of the daemon', async () => {
      const seed = Number(process.env['HOSTILE_SEED'] ?? randomInt(2 ** 31));
      console.info(`      HOSTILE_SEED=${seed}`);
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'),
          targets,
          async (method, target) => {
            const { status, json } = await ask(method, target);
            expect(kindOf(status, json.errorCode), `${status} ${json.error}`).to.be.oneOf(
              expected(method, target),
            );
          },
        ),
        { seed, numRuns: runs(1_000) },
      );
    });
  });
});

/** By its answer to someone without a key. */
const kindOf = (status: number, errorCode: string | undefined): string => {
  if (status === 401 || status < 400) return 'operation';
  if (status === 404 || status === 405) return 'stranger';
  return status === 400 && (errorCode === undefined || errorCode === 'INVALID_ARGUMENT')
    ? 'no target'
    : `${status}`;
};

const expected = (method: string, target: string): readonly string[] => {
  const path = pathOf(method, target);
  if (path === undefined) return ['no target'];
  if (PAGES.test(path)) return ['operation', 'stranger'];
  if (operationAt(method === 'HEAD' ? 'GET' : method, path)) return ['operation'];
  // a pool with an image is refused by its own words, whoever has no key before that
  return /^\/sandboxpools\/[^/]+\/\//.test(path)
    ? ['operation', 'no target', 'stranger']
    : ['stranger'];
};

/**
 * Paths of operations with one to three things put in, taken out or doubled, bare or behind a host.
 */
const targets = fc
  .record({
    path: fc.constantFrom(
      ...documentedOperations.map(({ path }) => path.replaceAll(/\{\w+\}/g, 'x')),
    ),
    base: fc.constantFrom('', '', '/v1', '/v1/v1', '/V1', '/'),
    host: fc.constantFrom(
      '',
      '',
      '',
      'http://x',
      'HTTP://x:80',
      'https://[::1]:8080',
      'http://127.0.0.1',
      'http://',
      'http://u@x',
      'http://[::1',
      'ftp://x',
      'http://x:y',
    ),
    query: fc.constantFrom('', '', '?', '?limit=1', '?a#b', '?/x', '#', '#?', '?limit=%zz'),
    changes: fc.array(
      fc.record({
        at: fc.nat(60),
        away: fc.nat(2),
        put: fc.constantFrom(
          '',
          '/',
          '//',
          '?',
          '#',
          '%',
          '%2F',
          '%2f',
          '%23',
          '%3F',
          '%00',
          '.',
          '..',
          '/../',
          '*',
          ':',
          '@',
          ';',
          '\\',
          '|',
          '[',
          ']',
          '"',
          '^',
          '{',
          '}',
          '~',
          '+',
          'a',
          'A',
        ),
      }),
      { maxLength: 3 },
    ),
  })
  .map(({ path, base, host, query, changes }) => {
    let text = base + path + query;
    for (const { at, away, put } of changes)
      text = text.slice(0, 1 + at) + put + text.slice(1 + at + away);
    return host + text;
  });
