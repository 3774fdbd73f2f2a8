import { expect } from 'chai';
import { onACliDaemon } from './cli-support.ts';

describe('lists of one cluster, on the command line', () => {
  const { sandpool } = onACliDaemon();

  for (const command of ['sandboxes', 'pools'])
    it(`${command} list takes --cluster`, async () => {
      const list = (cluster: string) => sandpool(command, 'list', '--cluster', cluster);
      expect(await list('local')).to.include({ code: 0, stderr: '' });
      expect((await list('west')).stderr).to.include('cluster not found');
      expect((await list('W')).stderr).to.include('clusterID');
    });
});
