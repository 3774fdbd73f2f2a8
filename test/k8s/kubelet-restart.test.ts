import { expect } from 'chai';
import { InstanceGone, LogsGone, NotJoinable } from '../../src/contracts/sandbox-driver.ts';
import { refusalOf } from '../../src/http/reply/error-table.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aFakePod, POD_GONE, type FakePod } from './a-fake-pod-server.ts';

const NEVER = new AbortController().signal;

const WAYS: readonly (readonly [
  string,
  (under: FakePod) => Promise<unknown>,
  abstract new (...args: never) => Error,
])[] = [
  [
    'a command',
    ({ streams, pod }) =>
      streams.exec(pod, { argv: ['true'], timeoutMs: 30_000, outputLimit: 100 }, NEVER),
    InstanceGone,
  ],
  [
    'a terminal',
    ({ streams, pod }) => streams.attach(pod, { argv: ['bash'], cols: 80, rows: 24 }),
    InstanceGone,
  ],
  ['a connection', ({ streams, pod }) => streams.dial(pod, 7_000, NEVER), InstanceGone],
  [
    'a log',
    ({ streams, pod }) => streams.logs(pod, { tailLines: 10, limitBytes: 1_000 }),
    LogsGone,
  ],
];

/** What API servers make of a kubelet's 404, and what kubelets say themselves. */
const ANSWERS: readonly (readonly [string, string])[] = [
  ['as the API server passes it on', JSON.stringify(POD_GONE)],
  ['in its own words', 'pod does not exist'],
];

describe('a kubelet that has just restarted', () => {
  let under: FakePod;
  beforeEach(async () => {
    under = await aFakePod(() => undefined);
  });
  afterEach(() => under.close());

  for (const [way, open, goneAs] of WAYS) {
    for (const [how, body] of ANSWERS) {
      it(`refuses ${way} ${how} with a retryable error`, async () => {
        under.refusal = { status: 404, body };
        const failure = await rejection(open(under));
        expect(failure).to.be.instanceOf(NotJoinable);
        expect(refusalOf(failure)).to.deep.include({ code: 'UNAVAILABLE', retryAfter: 1 });
      });
    }

    it(`is believed about a missing Pod if the Pod is gone (${way})`, async () => {
      under.refusal = { status: 404, body: JSON.stringify(POD_GONE) };
      under.isGone = true;
      expect(await rejection(open(under))).to.be.instanceOf(goneAs);
    });
  }

  it('is believed if the Pod ends between the check and the call', async () => {
    under.refusal = { status: 404, body: JSON.stringify(POD_GONE) };
    under.refused = () => {
      under.isGone = true;
    };
    for (const [, open, goneAs] of WAYS) {
      under.isGone = false;
      expect(await rejection(open(under))).to.be.instanceOf(goneAs);
    }
  });
});
