import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import type { WrittenFile } from '../../../src/contracts/files.ts';
import { Homes } from '../../../src/http/e2b/services/files/homes.ts';
import {
  writeFiles,
  type WriteFilesDeps,
} from '../../../src/http/e2b/services/files/write-files.ts';
import { caller } from './a-served-sandbox.ts';
import { sent } from './rpc-client.ts';

const FILES = 100;
const FILE_BYTES = 200_000;
const TURNS = 100;
const WRITTEN: WrittenFile = {
  created: true,
  stat: { kind: 'file', size: 0, mode: 0o644, uid: 0, gid: 0, mtimeNs: 0n },
};

describe('a form of many small files', function () {
  it('is read no faster than its files are written', async () => {
    let ahead = 0;
    let written = 0;
    const writeSlowly =
      (request: IncomingMessage): WriteFilesDeps['operations']['writeFile'] =>
      async (_caller, _target, { content }) => {
        await buffer(content);
        for (let turn = 0; turn < TURNS; turn += 1) await setImmediate();
        written += 1;
        ahead = Math.max(ahead, request.socket.bytesRead - written * FILE_BYTES);
        return WRITTEN;
      };
    const homes = new Homes({
      execInSandbox: () => Promise.reject(new Error('nobody asks for the home')),
    });
    const server = createServer((request, response) => {
      const operations = { writeFile: writeSlowly(request) };
      void writeFiles(
        { operations, homes },
        { request, response },
        {
          ...{ caller, sandboxId: 'sandbox', requestId: 'request', by: 'token' },
          signal: new AbortController().signal,
        },
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const part = (at: number): string =>
        `--x\r\nContent-Disposition: form-data; name="file"; filename="/tmp/${at}"\r\n\r\n` +
        `${'.'.repeat(FILE_BYTES)}\r\n`;
      const body = `${Array.from({ length: FILES }, (_, at) => part(at)).join('')}--x--\r\n`;
      const answer = await sent((server.address() as AddressInfo).port, '/files', {
        body,
        headers: { 'content-type': 'multipart/form-data; boundary=x' },
      });
      answer.resume();

      expect([answer.statusCode, written]).to.deep.equal([200, FILES]);
      expect(ahead).to.be.below(2_000_000);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
