export { eventually } from '../../../local-cluster/eventually.ts';
