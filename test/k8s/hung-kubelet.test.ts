import { expect } from 'chai';
import { refusalOf } from '../../src/http/error-table.ts';
import { NodeSilent } from '../../src/k8s/pod-presence.ts';
import { rejection } from '../support/rejection.ts';
import { aFakePod, type FakePod } from './a-fake-pod-server.ts';

const NEVER = new AbortController().signal;
const REQUEST = { argv: ['true'], timeoutMs: 30_000, outputLimit: 100 };

describe('a kubelet that hangs, while its API server answers', () => {
  let under: FakePod;
  beforeEach(async () => {
    under = await aFakePod(() => undefined, { openWithinMs: 100 });
    under.isHung = true;
  });
  afterEach(() => under.close());

  for (const [way, open] of [
    ['a command', () => under.streams.exec(under.pod, REQUEST, NEVER)],
    ['a connection', () => under.streams.dial(under.pod, 7_000, NEVER)],
  ] as const) {
    it(`has its node known as silent by ${way}, which the client may try again`, async () => {
      const failure = await rejection(open());
      expect(failure).to.be.instanceOf(NodeSilent);
      expect(refusalOf(failure)).to.deep.include({ code: 'UNAVAILABLE', retryAfter: 1 });
    });
  }
});
