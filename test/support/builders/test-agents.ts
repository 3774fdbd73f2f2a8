import { agentProgram, type Agents } from '../../../src/k8s/sandboxes/pods/agent-programs.ts';

/** For Pods in which nothing runs. */
export const testAgents: Agents = {
  own: 'amd64',
  programs: new Map([['amd64', agentProgram(Buffer.from('an agent'))]]),
};
