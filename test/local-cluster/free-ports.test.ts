import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { rejection } from '../support/harness/rejection.ts';

const FREE_PORTS = fileURLToPath(
  new URL('../../local-cluster/control-plane/free-ports.ts', import.meta.url),
);
/** Of this process alone, as its id is. */
const FIRST = 12_000 + (process.pid % 500) * 10;

describe('free ports', function () {
  let end = async (): Promise<void> => undefined;
  afterEach(() => end());

  it('are given to one process at a time, though nothing listens on them yet', async () => {
    const range = [FIRST, FIRST + 6] as const;
    const other = spawn(
      process.execPath,
      [
        ...['--import', 'tsx', '--input-type=module', '--eval'],
        `import { freePorts } from ${JSON.stringify(FREE_PORTS)};
         console.log(JSON.stringify(await freePorts(3, ${JSON.stringify(range)})));
         process.stdin.resume();`,
      ],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    const ended = once(other, 'exit');
    end = async () => {
      other.stdin.end();
      await ended;
    };
    const theirs = JSON.parse(String((await once(other.stdout, 'data'))[0])) as number[];
    const ours = await freePorts(3, range);

    expect([...theirs, ...ours]).to.have.members([0, 1, 2, 3, 4, 5].map((n) => FIRST + n));
    expect(await rejection(freePorts(1, range)))
      .to.have.property('message')
      .that.includes('no 1');

    await end();
    expect(await freePorts(3, range)).to.have.members(theirs);
  });

  it('are none on which something listens', async () => {
    const port = FIRST + 7;
    const range = [port, port + 1] as const;
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');

    expect(await rejection(freePorts(1, range))).to.be.instanceOf(Error);

    server.close();
    await once(server, 'close');
    expect(await freePorts(1, range)).to.deep.equal([port]);
  });
});
